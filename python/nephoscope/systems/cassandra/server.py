"""One Cassandra node on an address of the loopback network."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.cassandra.install import FILES
from nephoscope.systems.cluster.folder import ServerFolder
from nephoscope.systems.cluster.product import Traits
from nephoscope.systems.cluster.ring import RingNode, Streamed
from nephoscope.systems.cluster.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import SecretStr

    from nephoscope.systems.cluster.product import Making, SettingValue

TRAITS = Traits(
    name="Cassandra",
    program="java",
    scheme="cassandra",
    user="",
    mark="commitlog",
    configuration="cassandra.yaml",
    password_file="none",  # noqa: S106 - the name of a file; the nodes of a ring let everybody in who is on this machine
    stages=((signal.SIGTERM, 30.0),),
    orphaned=signal.SIGTERM,
    # All nodes of a ring have the same ports: none may look for another one.
    port_taken="\0",
)

_LEAVE_S = 600.0
_JOIN_MS = 10_000
_PORTS = "ports"
_DAEMON = "org.apache.cassandra.service.CassandraDaemon"
_TOOL = "org.apache.cassandra.tools.NodeTool"
_RECEIVED = re.compile(r"Receiving (\d+) files?\(([\d.]+) ?(bytes|[KMGT]iB)\), sending")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True)
class Ports:
    """The ports of a ring, the same at every node's address; that of JMX, for the node's own tool, is not."""

    native: int
    storage: int

    @classmethod
    def of(cls, home: Path, nodes: int) -> Ports:
        """Take those that the ring in a folder has had, for its nodes know each other by them; else free ones."""
        try:
            native, storage = map(int, (home / _PORTS).read_text().split())
        except (OSError, ValueError):
            return cls(_free_port(nodes), _free_port(nodes))
        return cls(native, storage)

    def keep(self, home: Path) -> None:
        """Write them down for the next time."""
        (home / _PORTS).write_text(f"{self.native} {self.storage}\n")


@dataclass
class RingPlan:
    """What the nodes of a ring have in common."""

    nodes: int
    """How many there are in the beginning."""
    heap: str
    routing: str
    """As a URL has it: which node coordinates a request."""
    ports: Ports = Ports(0, 0)
    """Those of the ring, once its folder is known."""


def _free_port(nodes: int) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if all(_is_free(f"127.0.0.{number}", port) for number in range(1, nodes + 2)):
            return port


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


class CassandraFolder(ServerFolder):
    """The folder of a node. There is no password."""

    traits: ClassVar[Traits] = TRAITS

    def credentials(self, password: SecretStr) -> str:
        """Write nothing."""
        del password
        return ""

    def read_credentials(self, text: str) -> str:
        """Read nothing."""
        return text

    def found_version(self) -> str:
        """Tell the series that made the data."""
        return (self.path / "version").read_text().strip()


class CassandraServer(Server):
    """One node on its folder."""

    folder: CassandraFolder
    _initialiser = "none"

    def __init__(self, folder: CassandraFolder, making: Making, number: int, ring: RingPlan) -> None:
        """Describe the node with a number, which is the end of its address; nothing is touched."""
        super().__init__(folder, making)
        self.host = f"127.0.0.{number}"
        self.port = ring.ports.native
        self._ring = ring
        self._jmx = _free_port(0)
        self._joins = number > ring.nodes
        self._delay_s = making.delay_s if number == ring.nodes else 0.0
        self._reached_at = f"127.0.1.{number}" if self._delay_s else self.host
        """Where other nodes reach it: at a proxy, if what they send it comes late."""
        self._proxy: _engine.FaultProxy | None = None

    @property
    def version(self) -> str:
        """The series, as ``5.0``."""
        return self.install.series

    def url(self, database: str, address: str | None = None) -> str:
        """Make the URL of a keyspace."""
        url = f"{self.traits.scheme}://{address or f'{self.host}:{self.port}'}/{database}"
        return url if self._ring.routing == "fixed" else f"{url}?routing={self._ring.routing}"

    def _before_launch(self) -> None:
        """Put the proxy before the node that gets everything late."""
        if self._delay_s and self._proxy is None:
            storage = self._ring.ports.storage
            self._proxy = _engine.FaultProxy(f"{self.host}:{storage}", f"{self._reached_at}:{storage}")
            self.delay(self._delay_s)

    def delay(self, seconds: float) -> None:
        """Have what other nodes send it come so late from now on, if there is a proxy before it."""
        if self._proxy is not None:
            late = {"law": "constant", "ms": seconds * 1000}
            self._proxy.set(json.dumps({"to_server": {"delay": late}}))

    def halt(self) -> None:
        """As of every server; and end the proxy."""
        super().halt()
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None

    def _initialise(self, output: int) -> None:
        """Make an empty folder: the node makes the rest as it starts."""
        del output
        self.folder.data.mkdir(mode=0o700)
        os.chown(self.folder.data, self.account.uid, self.account.gid)
        self.folder.keep_password(self.folder.password)
        (self.folder.path / "version").write_text(self.version)

    def _initialising(self, place: Path, secret: Path) -> Sequence[str | Path]:
        raise MeasurementError(f"{place} and {secret} are made by the node itself")

    def _java(self, *words: str | Path) -> Sequence[str | Path]:
        jars = self.install.folders[1]
        return (self.install.program("java"), *words[:-1], "-cp", f"{FILES}:{jars}/*", words[-1])

    def _serving(self) -> Sequence[str | Path]:
        agent = next(self.install.folders[1].glob("jamm-*.jar"))
        command = self._java(
            f"@{FILES / 'node.options'}",
            f"-Xms{self._ring.heap}",
            f"-Xmx{self._ring.heap}",
            f"-javaagent:{agent}",
            # Whoever joins a ring that has data waits for so long at most until it knows the tables; else it gets none.
            *([f"-Dcassandra.ring_delay_ms={_JOIN_MS}"] if self._joins else []),
            f"-Dcassandra.config=file://{self.folder.configuration}",
            f"-Dcassandra.storagedir={self.folder.data}",
            f"-Dcassandra.jmx.local.port={self._jmx}",
            f"-Dlogback.configurationFile={FILES / 'logback.xml'}",
            _DAEMON,
        )
        # The last word is for whoever looks for what works on the folder; a node reads no words.
        return (*command, self.folder.data)

    def _says_ready(self, pid: int) -> bool:
        """Look for what it says before it listens, which is after it has joined; then try."""
        del pid
        if not self.folder.says("Starting listening for CQL clients"):
            return False
        try:
            socket.create_connection((self.host, self.port), 1.0).close()
        except OSError:
            return False
        return True

    def configuration(self, settings: Mapping[str, SettingValue]) -> str:
        """Write cassandra.yaml, of which JSON is a part."""
        ours = {
            "listen_address": self.host,
            "broadcast_address": self._reached_at,
            "rpc_address": self.host,
            "storage_port": self._ring.ports.storage,
            "native_transport_port": self._ring.ports.native,
            "seed_provider": [
                {
                    "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                    "parameters": [{"seeds": f"127.0.0.1:{self._ring.ports.storage}"}],
                }
            ],
        }
        fixed = (FILES / "node.yaml").read_text()
        kept = [line for line in fixed.splitlines() if line.partition(":")[0] not in settings]
        lines = [f"{name}: {json.dumps(value)}" for name, value in {**settings, **ours}.items()]
        return "\n".join([*kept, *lines, ""])

    def _apply(self, changes: Mapping[str, SettingValue | None]) -> None:
        """Do nothing: a node reads its settings as it starts."""

    def needs_restart(self, settings: Mapping[str, SettingValue]) -> bool:
        """Have every setting wait for the next start, which tells whether the node takes it."""
        del settings
        return True

    def make_database(self, name: str) -> None:
        """Make a keyspace on this node alone."""
        self.make_keyspace(name, 1)

    def make_keyspace(self, name: str, replication_factor: int) -> None:
        """Make a keyspace, or give the one of that name so many replicas."""
        replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
        self.ask(f'CREATE KEYSPACE IF NOT EXISTS "{name}" WITH replication = {replication}')
        self.ask(f'ALTER KEYSPACE "{name}" WITH replication = {replication}')

    def ask(self, cql: str) -> list[list[str | None]]:
        """Run a statement on this node. Raises ``MeasurementError``."""
        admin = _engine.Admin(self.url(""), connect_timeout_s=30.0)
        try:
            return admin.query(cql, answer_timeout_s=60.0)[1]
        finally:
            admin.close()

    def run_tool(self, *words: str) -> None:
        """Run Cassandra's own nodetool on this node to its end. Raises ``MeasurementError``."""
        command = (
            *self._java(
                *(f"@{FILES / 'node.options'}", "-Xmx64M", "-Dcom.sun.jndi.rmiURLParsing=legacy"),
                # It keeps a history of its own in the home of its user, who may have none.
                *(f"-Duser.home={self.folder.data}", _TOOL),
            ),
            *("-h", "127.0.0.1", "-p", str(self._jmx), *words),
        )
        with self.folder.opened_log() as output:
            self.run_program(command, output, _LEAVE_S, f"nodetool {' '.join(words)} failed")


class CassandraNode(RingNode):
    """One node of a ring."""

    server: CassandraServer

    @property
    def address(self) -> str:
        """Its own address, also while it does not run."""
        return f"{self.server.host}:{self.server.port}"

    def facts(self) -> dict[str, object]:
        """Tell where it is."""
        return {**super().facts(), "host": self.server.host}

    def known(self) -> int:
        """Count the nodes that serve as gossip has it: once one has joined, and again once it has been restarted."""
        states = self.server.ask("SELECT status_with_port FROM system_views.gossip_info")
        return sum((state or "").startswith("NORMAL") for (state,) in states) - 1

    def leave(self) -> Mapping[str, Any]:
        """Stream what it has to the others (``nodetool decommission``)."""
        self.server.run_tool("decommission", "--force")
        return {"how": "decommission"}

    def check_joined(self) -> None:
        """Look for ranges that it has asked other nodes for: it knew the tables."""
        if not self.server.folder.says("Bootstrap: range "):
            raise MeasurementError(
                f"{self.name} knew no table when it joined, and got none of their rows: is the machine busy?"
            )

    def streamed(self) -> Streamed:
        """Read its log, which has a line for each node that streams to it."""
        log = self.server.folder.log
        found = _RECEIVED.findall(log.read_text(errors="replace")) if log.exists() else []
        sizes = (float(number) * _UNITS[unit] for _, number, unit in found)
        return Streamed(sum(int(files) for files, _, _ in found), round(sum(sizes)))
