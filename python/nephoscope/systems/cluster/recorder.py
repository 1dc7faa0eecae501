"""A server that records its own I/O: the library that it is started with, and the folder of its records."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.machine.folders import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.systems.cluster.folder import ServerFolder
    from nephoscope.systems.machine.account import Account


class IoRecorder:
    """What has a server's processes record their reads, writes and syncs of the files in the data folder.

    Each process appends to a file of its own in :attr:`records` (``_engine.StorageRecording`` reads them), which the
    start of the server empties.
    """

    def __init__(self, folder: ServerFolder, account: Account) -> None:
        """Take the server's folder and user; nothing is touched."""
        self._folder = folder
        self._account = account
        self._library = folder.path / "io_recorder.so"
        self.records = folder.path / "io"
        """The folder of the records; it is the server's user's."""

    def prepare(self) -> None:
        """Write the library, and empty the folder of records, before the server starts.

        Raises:
            MeasurementError: there is no library for this machine, or a path that the loader cannot take.

        """
        if any(character in str(self._library) for character in " :"):
            raise MeasurementError(
                f"system.record_io: the loader takes no library from a folder with a space or a colon in its name: "
                f"{self._folder.path}; system.data can name another one"
            )
        # Ours, and read-only for the server's user: it is loaded into what runs as that user, and into nothing else.
        write_file(self._library, _engine.storage_preload(), private=False)
        if self.records.exists():
            shutil.rmtree(self.records)
        self.records.mkdir(mode=0o700)
        os.chown(self.records, self._account.uid, self._account.gid)

    def environment(self) -> Mapping[str, str]:
        """Make what is added to the environment of the server."""
        return {
            "LD_PRELOAD": str(self._library),
            "NEPHOSCOPE_IO_RECORDS": str(self.records),
            # As the kernel names it, for that is what the library compares with.
            "NEPHOSCOPE_IO_DATA": str(self._folder.data.resolve()),
        }

    def check(self, pid: int) -> None:
        """See that a server which is ready records all that it does with its files.

        Raises:
            MeasurementError: it has recorded nothing, although no server starts without reading; or it writes to a file
                by a mapping, as MariaDB does with its log in /dev/shm: the library sees calls only.

        """
        name, data = self._folder.traits.name, f"{self._folder.data.resolve()}/"
        if not any(self.records.iterdir()):
            raise self._folder.failure(f"{name} does not record its I/O")
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            _, access, _, _, _, *place = line.split(maxsplit=5)
            if "w" in access and access.endswith("s") and place and place[0].startswith(data):
                raise MeasurementError(
                    f"system.record_io: {name} writes to {place[0]} by a mapping, without calls that can be recorded; "
                    "system.data can name a folder in another file system"
                )
