"""One Redis server: its folder, its configuration, and how it is asked."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, ClassVar

from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.folder import HOST, ServerFolder
from nephoscope.systems.cluster.product import Traits
from nephoscope.systems.cluster.server import Server
from nephoscope.systems.machine.capacity import GIB
from nephoscope.systems.machine.folders import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import SecretStr

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.machine.capacity import Machine

TRAITS = Traits(
    name="Redis",
    program="redis-server",
    scheme="redis",
    user="default",
    mark="made-by",
    configuration="redis.conf",
    password_file="password",  # noqa: S106 - the name of a file
    # It waits for its replicas for ten seconds at most. While a replica writes its first log it heeds no signal.
    stages=tuple((signal.SIGTERM, seconds) for seconds in (1.0, 2.0, 5.0, 25.0)),
    orphaned=signal.SIGTERM,
    port_taken="Address already in use",
)

OURS = frozenset(
    {
        # where the server listens and who may come in
        *(
            "bind",
            "port",
            "tls-port",
            "unixsocket",
            "unixsocketperm",
            "protected-mode",
            "requirepass",
            "aclfile",
        ),
        *("user", "rename-command", "include", "loadmodule", "masterauth", "masteruser"),
        # where its files are
        *("dir", "dbfilename", "appenddirname", "appendfilename", "logfile", "pidfile", "syslog-enabled"),
        # how it is run
        *("daemonize", "supervised", "databases", "cluster-enabled", "set-proc-title"),
        # who follows whom
        *("replicaof", "slaveof", "replica-read-only", "slave-read-only"),
    }
)
"""Settings that this tool needs for itself: a study cannot have them."""

VERSION = re.compile(r"v=((\d+\.\d+)[\d.]*)")
"""What `redis-server --version` says: the version, and its series."""

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_MIB = 1 << 20
_SECRET = "secret.conf"  # noqa: S105 - the name of a file
_NOTHING = '""'
_INITIALISE = 'exec "$1" --version > "$2"'


def check_settings(settings: Mapping[str, SettingValue]) -> None:
    """Check what can be checked without a server.

    Raises:
        ValueError: a name is none, or is one of :data:`OURS`, or a value cannot be written down.

    """
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a Redis setting: they are written as in redis.conf"
            )
        if name in OURS:
            raise ValueError(f"{name} cannot be set: embedded-redis sets it itself")
        if not str(value).isprintable():
            raise ValueError(f"{name} has a value with control characters")


def sane_settings(machine: Machine) -> dict[str, SettingValue]:
    """Choose the settings of a server that has this machine for itself."""
    return {
        # An acknowledged write is on the disk. Any figure without that is another database's figure.
        "appendonly": True,
        "appendfsync": "always",
        # A snapshot beside that would write everything a second time, at moments that nobody chose.
        "save": "",
        **memory_settings(machine),
        # What is full says so, and drops nothing.
        "maxmemory-policy": "noeviction",
    }


def memory_settings(machine: Machine) -> dict[str, SettingValue]:
    """Choose what follows from the memory: half for data, the rest for copies while the log is written anew."""
    return {"maxmemory": int(min(max(machine.memory_bytes / 2, 64 * _MIB), 8 * GIB))}


def replication_settings() -> dict[str, SettingValue]:
    """Choose the settings of the nodes of a cluster, beside those that suit the machine."""
    return {
        # A replica that comes is served at once: the default waits for 5 s, lest others come, too.
        "repl-diskless-sync": True,
        "repl-diskless-sync-delay": 0,
        # A replica that was away for a while goes on where it was.
        "repl-backlog-size": 64 * _MIB,
    }


class RedisFolder(ServerFolder):
    """Beside what every server's folder holds, a file of settings that are secret."""

    traits: ClassVar[Traits] = TRAITS

    def __init__(self, path: Path) -> None:
        """Take an absolute path; nothing is touched yet."""
        super().__init__(path)
        self.secret = path / _SECRET

    def credentials(self, password: SecretStr) -> str:
        """Write a password as a file has it."""
        return f"{password.get_secret_value()}\n"

    def read_credentials(self, text: str) -> str:
        """Read the password from such a file."""
        return text.strip()

    def found_version(self) -> str:
        """Read the series of the server that made the database, ``7.0`` for one."""
        if (found := VERSION.search((self.data / self.traits.mark).read_text())) is None:
            raise ValueError("its file of the version says nothing")
        return found[2]


class RedisServer(Server):
    """One redis-server on its folder."""

    folder: RedisFolder
    _initialiser = "redis-server --version"

    @property
    def version(self) -> str:
        """The series, as ``7.0``."""
        return self.install.series

    def url(self, database: str, address: str | None = None) -> str:
        """Make the URL of its first database; Redis has numbers in the place of names."""
        del database
        return super().url("0", address)

    def ask(self, *words: str) -> str:
        """Run a command; return what it answers, items by lines.

        Raises:
            MeasurementError: it is an error, or took more than 30 s.

        """
        where = ("-h", HOST, "-p", str(self.port))
        command: tuple[str | Path, ...] = (self.install.program("redis-cli"), *where, "-e", *words)
        return self.run_client(command, "", {"REDISCLI_AUTH": self.folder.password.get_secret_value()})

    def replication(self) -> dict[str, str]:
        """Tell what it says of its replication (<https://redis.io/docs/latest/commands/info/>)."""
        return dict(line.split(":", 1) for line in self.ask("INFO", "replication").split() if ":" in line)

    def make_database(self, name: str) -> None:
        """Do nothing: its databases are numbers, and are there."""

    def needs_restart(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell whether one of these settings, whose names have been checked, holds only after a restart.

        Raises:
            MeasurementError: Redis has no such setting.

        """
        restarts = False
        for name in settings:
            answer = self.ask("CONFIG", "GET", name).split("\n", 1)
            if answer[0] != name:
                raise MeasurementError(f"Redis has no setting {name}")
            restarts |= not self._set(name, answer[1].strip() if len(answer) > 1 else "")
        return restarts

    def _set(self, name: str, value: str) -> bool:
        """Set what can be set while the server runs; tells whether this can be."""
        try:
            self.ask("CONFIG", "SET", name, value)
        except MeasurementError as error:
            if "immutable" not in str(error):
                raise
            return False
        return True

    def configuration(self, settings: Mapping[str, SettingValue]) -> str:
        """Write redis.conf; what is secret stands in a file of its own."""
        reach: dict[str, SettingValue] = {
            "bind": HOST,
            "port": self.port,
            "protected-mode": True,
            "daemonize": False,
            "set-proc-title": False,
            # To standard output, which is the log.
            "logfile": "",
            "include": str(self.folder.secret),
        }
        lines = [f"{name} {_plain(value) or _NOTHING}" for name, value in (dict(settings) | reach).items()]
        return "\n".join(
            ["# Written by nephoscope at every start; change system.settings instead.", *lines, ""]
        )

    def _initialising(self, place: Path, secret: Path) -> Sequence[str | Path]:
        del secret
        program = self.install.program("redis-server")
        return ("/bin/sh", "-c", _INITIALISE, "sh", program, place / self.traits.mark)

    def _serving(self) -> Sequence[str | Path]:
        # Its folder as an argument tells whose process it is.
        return (self.install.program("redis-server"), self.folder.configuration, "--dir", self.folder.data)

    def _says_ready(self, pid: int) -> bool:
        """Look for what it says last before it takes connections."""
        del pid
        return self.folder.says("Ready to accept connections")

    def _before_launch(self) -> None:
        password = self.folder.password.get_secret_value()
        text = f'requirepass "{password}"\nmasterauth "{password}"\n'
        owner = (self.account.uid, self.account.gid)
        write_file(self.folder.secret, text, private=True, owner=owner)

    def _apply(self, changes: Mapping[str, SettingValue | None]) -> None:
        """Set what can be set while the server runs; what a study takes back holds until the next start."""
        for name, value in changes.items():
            if name == "replicaof":
                self.ask("REPLICAOF", *(str(value).split() if value is not None else ("NO", "ONE")))
            elif value is not None:
                self._set(name, _plain(value))


def _plain(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
