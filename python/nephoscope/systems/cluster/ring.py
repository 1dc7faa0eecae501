"""A cluster without a leader: every node takes writes, and whoever joins takes over a part of the data."""

from __future__ import annotations

import shutil
import time
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.systems.cluster.cluster import Cluster
from nephoscope.systems.cluster.node import LOOK_AGAIN_S, Began, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nephoscope.settings.base import Role
    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.cluster.server import Server

_KNOWN_S = 120.0
"""After this long a node that has joined is not known to all others, and will not be."""


@dataclass(frozen=True)
class Streamed:
    """Files that nodes have had of others, and their size in bytes."""

    files: int = 0
    size: int = 0

    def since(self, before: Streamed) -> Mapping[str, Any]:
        """Tell how many more there are than before, for an event."""
        return {"files": self.files - before.files, "bytes": self.size - before.size}


class RingNode(Node):
    """One node of a ring: it follows nobody, and is copied from all the others as it joins."""

    copied_by = "bootstrap"

    @property
    def is_replica(self) -> bool:
        """None is."""
        return False

    @property
    def timeline(self) -> int:
        """No node is ever promoted."""
        return 1 if self.has_data else 0

    def is_copy_of(self, other: Self) -> bool:
        """No node has all that another has."""
        del other
        return False

    def follow(self, primary: Self) -> None:
        """Do nothing: nobody leads."""

    def _copy(self, primary: Self, place: Path) -> None:
        raise MeasurementError(f"{self.name} cannot be copied from {primary.name} alone to {place}")

    def goal(self) -> str:
        """There is no log."""
        return ""

    def progress(self, goal: str, *, shown: bool) -> tuple[bool, bool]:
        """Whoever serves has come to it."""
        del goal, shown
        return True, True

    def received(self) -> int:
        """There is no log."""
        return 0

    def has_all_of(self, old: Self) -> bool:
        """No node has."""
        del old
        return False

    def _promote(self) -> None:
        raise MeasurementError(f"{self.name} takes writes as every node does: nothing leads the ring")

    def wait_for(self, names: Sequence[str]) -> None:
        """Do nothing: how many nodes a write waits for is its own consistency level."""

    @abstractmethod
    def known(self) -> int:
        """Tell how many other nodes of the ring it knows as its members. Raises ``MeasurementError``."""

    @abstractmethod
    def leave(self) -> Mapping[str, Any]:
        """Hand its data over to the others; tell what is worth keeping of it. Raises ``MeasurementError``."""

    @abstractmethod
    def check_joined(self) -> None:
        """See that it got its part of the data as it joined. Raises ``MeasurementError``."""

    @abstractmethod
    def streamed(self) -> Streamed:
        """Tell what other nodes have streamed to it since its log began."""


class RingCluster(Cluster):
    """Nodes that know each other. Clients have the addresses of all of them, and no front is needed."""

    def __init__(self, home: Path, make_node: Callable[[str, Path], Node]) -> None:
        """Describe a ring; nothing is touched yet. The first node is the one that the others ask for the ring."""
        super().__init__(home, make_node, has_front=False)

    def start(self, replicas: int, prepare: Callable[[Server], None]) -> None:
        """Start the first node and the others behind it, one after the other; then let ``prepare`` do what it has to.

        Raises:
            InputError: a folder or a setting cannot be used.
            MeasurementError: a folder is in use, or a node does not start.

        """
        names = {f"node{number}" for number in range(1, replicas + 2)}
        if left := {folder.name for folder in self._home.glob("node*") if folder.is_dir()} - names:
            raise InputError(
                f"folder {self._home} holds a ring with {', '.join(sorted(left))} besides: remove the folder, or "
                "system.data can name another"
            )
        self.primary.start()
        for number in range(2, replicas + 2):
            node = self._nodes[f"node{number}"] = self._new_node(number)
            node.start()
            self._await_members()
        prepare(self.primary.server)

    def stop(self) -> None:
        """End everything, all nodes at once: each takes seconds to say goodbye, and the others need none of it."""

        def halt(node: Node) -> None:
            # What goes wrong is tried once more below, and raised there.
            with suppress(NephoscopeError, OSError):
                node.halt()

        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(halt, self._nodes.values()))
        super().stop()

    def _await_members(self) -> None:
        """Wait until every node knows of all others that they have joined: gossip takes a moment.

        Raises ``MeasurementError``.
        """
        deadline = time.monotonic() + _KNOWN_S
        for node in cast("Iterable[RingNode]", self._nodes.values()):
            while (known := node.known()) < len(self._nodes) - 1:
                if time.monotonic() > deadline:
                    raise MeasurementError(
                        f"{node.name} knows {known} other nodes of the ring after {_KNOWN_S:g} s, and not "
                        f"{len(self._nodes) - 1}"
                    )
                time.sleep(LOOK_AGAIN_S)

    def nodes(self) -> dict[str, Role]:
        """Tell the nodes: all take writes."""
        return dict.fromkeys(self._nodes, "rw")

    def urls(self, role: Role, database: str) -> tuple[str, ...]:
        """Tell the one URL with the addresses of all nodes, those that do not run included."""
        if role == "ro":
            return ()
        server = self.primary.server
        hosts = ",".join(cast("str", node.address) for node in self._nodes.values())
        return (server.url(database, hosts),)

    def facts(self) -> dict[str, object]:
        """Tell what is worth keeping with a measurement; nothing of it is secret."""
        nodes = {name: node.facts() for name, node in self._nodes.items()}
        return {**self.primary.server.facts(), "nodes": nodes}

    def node(self, name: str | None, role: Role = "rw") -> Node:
        """Find a node by its name; where none is meant the last one, which no other asks for the ring."""
        del role
        return super().node(name or list(self._nodes)[-1])

    def _bring_back(self, node: Node) -> dict[str, Any]:
        node.start()
        return {"how": "started"}

    def _settle(self) -> None:
        """Nothing leads anywhere."""

    def add_node(self, name: str | None) -> Began:
        """Add a node; done when it has taken over its part of the data, serves, and is known to all others."""
        for node in self._nodes.values():
            self._running(node)
        free = next(number for number in range(1, 1000) if f"node{number}" not in self._nodes)
        if name not in {None, f"node{free}"}:
            raise MeasurementError(f"the next node is node{free}, and not {name}")
        new = cast("RingNode", self._new_node(free))
        new.server.folder.take(new.server.account)
        shutil.rmtree(new.server.folder.data, ignore_errors=True)
        before, began = new.streamed(), _engine.monotonic_ns()
        try:
            new.start()
        except BaseException:
            new.stop()
            raise
        self._nodes[new.name] = new
        self._await_members()
        try:
            new.check_joined()
        except MeasurementError:
            self.remove_node(new.name)
            raise
        return Began(new.name, began, {"how": new.copied_by, **new.streamed().since(before)})

    def remove_node(self, name: str | None) -> Began:
        """Have a node hand its data over to the others; done when it has, and has ended."""
        node = cast("RingNode", self._running(self.node(name)))
        if node is self.primary:
            raise MeasurementError("node1 cannot be removed: its folder is that of the whole ring")
        others = [one for one in self._nodes.values() if one is not node]
        before = _streamed(others)
        began = _engine.monotonic_ns()
        detail = node.leave()
        del self._nodes[node.name]
        node.stop()
        shutil.rmtree(node.server.folder.path, ignore_errors=True)
        return Began(node.name, began, {**detail, **_streamed(others).since(before)})

    def set(self, settings: Mapping[str, SettingValue]) -> Began:
        """Set parameters on every node, which are restarted one after the other."""
        for node in self._nodes.values():
            self._running(node)
        self.primary.server.needs_restart(settings)
        began = _engine.monotonic_ns()
        for node in self._nodes.values():
            before = dict(node.server.settings)
            node.halt()
            node.server.configure(settings)
            try:
                node.start()
            except Exception as error:
                node.server.configure_anew(before)
                node.start()
                raise MeasurementError(f"{node.name} does not start with these settings: {error}") from error
        return Began(None, began, {"restarted": list(self._nodes)})


def _streamed(nodes: Iterable[Node]) -> Streamed:
    """Tell what has been streamed to nodes."""
    each = [cast("RingNode", node).streamed() for node in nodes]
    return Streamed(sum(one.files for one in each), sum(one.size for one in each))
