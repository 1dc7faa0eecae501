"""The folder of one server: what is in it, whose it is, and what its log says."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from pydantic import SecretStr

from nephoscope.errors import InputError, MeasurementError
from nephoscope.masking import know, masked
from nephoscope.systems.cluster.leftovers import end_leftovers
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.folders import LOCK_FILE, FolderLock, make_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nephoscope.systems.cluster.product import Traits
    from nephoscope.systems.machine.account import Account

HOST = "127.0.0.1"
"""Where servers listen, and nowhere else."""

ANOTHER_FOLDER = "system.data can name another folder"

_LOCK_S = 60.0
_LOG_BYTES = 16 << 20
_SHOWN_BYTES = 16384
_SHOWN_LINES = 15


class ServerFolder(ABC):
    """A server's folder.

    It holds ``data`` (the product's own), the configuration (written at every start), the superuser's random
    password, ``server.log`` and a lock file. All but ``data`` is ours: where we are root, the server's user reads
    its configuration and can change nothing.
    """

    traits: ClassVar[Traits]

    def __init__(self, path: Path) -> None:
        """Take an absolute path; nothing is touched yet."""
        self.path = path
        self.data = path / "data"
        self.unfinished = path / "data.new"
        """Where a database is made before it is moved to ``data``: half a one is never taken for a whole."""
        self.log = path / "server.log"
        self.configuration = path / self.traits.configuration
        self.password_file = path / self.traits.password_file
        self.password = SecretStr("")
        """Empty until the database was made or checked."""
        self._lock = FolderLock(path)
        self._log_start = 0

    # --- what a product says of it -------------------------------------------------------------------------------

    @abstractmethod
    def credentials(self, password: SecretStr) -> str:
        """Write a password as the product's own client reads it: for a file that only its reader can read."""

    @abstractmethod
    def read_credentials(self, text: str) -> str:
        """Read the password in such a text. Raises ``ValueError``."""

    @abstractmethod
    def found_version(self) -> str:
        """Tell of which version the database is, as far as that matters. Raises ``OSError`` or ``ValueError``."""

    # --- what is the same for all --------------------------------------------------------------------------------

    @property
    def lock_descriptor(self) -> int:
        """The open lock file, for children that have to hold the folder beyond our death."""
        return self._lock.descriptor

    def take(self, account: Account) -> None:
        """Make the folder ours, and end what an earlier run left running in it.

        Raises:
            InputError: it cannot be used, by us or by ``account``, or holds what we did not make.
            MeasurementError: another process uses it, or left something that cannot be ended.

        """
        make_folder(self.path, "system.data")
        try:
            names = {entry.name for entry in self.path.iterdir()} - {"lost+found"}
        except OSError as error:
            raise InputError(f"cannot read folder {self.path}: {error.strerror}; {ANOTHER_FOLDER}") from error
        if names and LOCK_FILE not in names:
            what = (
                "a database that nephoscope did not make"
                if self.traits.mark in names
                else "files of something else"
            )
            raise InputError(f"folder {self.path} holds {what}: {ANOTHER_FOLDER}, a new or an empty one")
        self._lock.acquire(_LOCK_S, wait_for_living=False, hint=ANOTHER_FOLDER)
        if not account.can_enter(self.path):
            raise InputError(
                f"folder {self.path} is out of reach for user {account.name}, who runs {self.traits.name} in root's "
                f"place: {ANOTHER_FOLDER}, or NEPHOSCOPE_CACHE another cache folder"
            )
        for place in (self.data, self.unfinished):
            if left := self.end_leftovers(place):
                raise MeasurementError(
                    f"processes {left}, which an earlier run left in {place}, cannot be ended"
                )

    def end_leftovers(self, place: Path) -> list[int]:
        """End what works on a place in this folder; return the processes that cannot be ended."""
        return end_leftovers(self.traits, place)

    def release(self) -> None:
        """Give the folder back; harmless where it was not taken."""
        self._lock.release()

    def keep_password(self, password: SecretStr) -> None:
        """Store the password of a database that has just been made."""
        write_file(self.password_file, self.credentials(password), private=True)

    def check(self, version: str) -> None:
        """See that the database is of this version, and read its password.

        Raises:
            InputError: it is of another version, or damaged.

        """
        try:
            found = self.found_version()
            password = self.read_credentials(self.password_file.read_text())
        except (OSError, ValueError) as error:
            raise InputError(
                f"folder {self.path} holds a damaged database ({error}): remove the folder, "
                f"or {ANOTHER_FOLDER}"
            ) from error
        if found != version:
            raise InputError(
                f"folder {self.path} holds a database of {self.traits.name} {found}, and system.version is "
                f"{version}: change that, remove the folder, or {ANOTHER_FOLDER}"
            )
        self.password = SecretStr(password)

    @contextmanager
    def opened_log(self) -> Iterator[int]:
        """Open the log for a child's output; what it says from now on are the :meth:`last_words`."""
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.fstat(descriptor).st_size > _LOG_BYTES:
                os.ftruncate(descriptor, 0)
            self.mark_log()
            yield descriptor
        finally:
            os.close(descriptor)

    def mark_log(self) -> None:
        """Forget what the log says until now."""
        self._log_start = self.log.stat().st_size

    def says(self, words: str) -> bool:
        """Tell whether a line of the log since it was opened or marked has these words."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_start)
                return words.encode() in file.read()
        except OSError:
            return False

    def last_words(self) -> str:
        """Read the last lines that the log got since it was opened or marked."""
        try:
            with self.log.open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, end - _SHOWN_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return self.redacted("\n".join(text.splitlines()[-_SHOWN_LINES:]))

    def failure(self, what: str) -> MeasurementError:
        """Make an error of something that went wrong here: what, and the last words of the log."""
        said = self.last_words()
        return MeasurementError(f"{what}. Its log, {self.log}, ends:\n{said}" if said else what)

    def redacted(self, text: str) -> str:
        """Take the password out of a text from elsewhere, should it ever be in it."""
        know(self.password.get_secret_value())
        return masked(text)


def choose_account(folder: Path, product: str) -> Account:
    """Choose the user that runs the server of ``folder``: the one that made its database, if there is one.

    ``product`` is its name in messages.

    Raises:
        InputError: the database belongs to somebody else, or cannot be looked at.
        MeasurementError: this system has nobody to run a server in root's place.

    """
    accounts = server_accounts(product)
    try:
        owner = (folder / "data").stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return accounts[0]
    except OSError as error:
        raise InputError(f"cannot use folder {folder}: {error.strerror}; {ANOTHER_FOLDER}") from error
    for account in accounts:
        if account.uid == owner:
            return account
    names = " or ".join(account.name for account in accounts)
    raise InputError(
        f"the database in folder {folder} belongs to user {owner}, and {product} would run as {names}: "
        f"remove the folder, or {ANOTHER_FOLDER}"
    )
