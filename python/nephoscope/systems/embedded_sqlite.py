"""SQLite: a database file that this process reads and writes itself: no server, and nothing to be done to one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.settings.registered import OwnSystemSettings, SystemSettings
from nephoscope.settings.resources import Resources
from nephoscope.systems.base import Provider, System
from nephoscope.systems.machine.capacity import GIB, storage_bytes, this_machine
from nephoscope.systems.machine.folders import FolderLock, cache_folder, make_folder

if TYPE_CHECKING:
    from nephoscope.settings.base import Role

_LOCK_S = 5.0


class EmbeddedSqliteSettings(OwnSystemSettings):
    """The ``[system]`` table of a study that measures SQLite."""

    provider: Literal["embedded-sqlite"] = "embedded-sqlite"
    data: Annotated[Path | None, Field(strict=False)] = None
    """The folder of the database file; one in the cache if left out. It stays, so that data is loaded once."""
    settings: dict[str, str | int] = Field(default_factory=dict)
    """Options of the connection, over journal_mode = "wal" and synchronous = "full": see
    [SQLite URLs](systems.md#sqlite-urls)."""


class EmbeddedSqlite(Provider):
    """Gives a database file of its own."""

    name: ClassVar[str] = "embedded-sqlite"
    summary: ClassVar[str] = "SQLite: a database file, and no server"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedSqliteSettings
    dialect_url: ClassVar[str] = "sqlite:none"

    def __init__(self, settings: EmbeddedSqliteSettings) -> None:
        """Take validated settings; touch nothing yet. Raises ``InputError`` for an option that there is not."""
        self._settings = settings
        self._folder = (settings.data or cache_folder() / "sqlite").expanduser().resolve()
        options = {"journal_mode": "wal", "synchronous": "full", **settings.settings}
        given = "&".join(f"{quote(name)}={quote(str(value))}" for name, value in options.items())
        self._url = f"sqlite://{quote(str(self._folder / f'{settings.database_name}.db'))}?{given}"
        try:
            _engine.check_url(self._url)
        except InputError as error:
            raise InputError(f"system.settings: {str(error).removeprefix('url: ')}") from None
        self._lock = FolderLock(self._folder)

    def start(self) -> System:
        """Take the folder. Raises ``InputError`` and, where somebody else uses it, ``MeasurementError``."""
        make_folder(self._folder, "system.data")
        self._lock.acquire(_LOCK_S, wait_for_living=False, hint="system.data can name another one")
        machine = this_machine()
        own = Resources(
            nodes=1,
            vcores=machine.cores,
            memory_gb=machine.memory_gb,
            storage_gb=storage_bytes(self._folder) / GIB,
        )
        return System(
            rw=(self._url,),
            resources=self._settings.resources or own,
            is_cached=self._settings.data is None,
        )

    def stop(self) -> None:
        """Give the folder back; the file stays."""
        self._lock.release()

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the file's URL."""
        del tenant
        return (self._url,) if role == "rw" else ()
