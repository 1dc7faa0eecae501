"""A cluster on this machine: one node takes writes, the others follow it; roles may move."""

from __future__ import annotations

import contextlib
import logging
import shutil
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.systems.cluster.front import Front
from nephoscope.systems.cluster.node import Began, LostTheWayError, Node, bring_home
from nephoscope.systems.machine import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nephoscope.settings.base import Role
    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.cluster.server import Server

_log = logging.getLogger(__name__)


class Cluster:
    """Nodes with their roles, and the endpoints that follow the roles.

    Every method that changes something is bounded in time. One that fails leaves the nodes as they are then:
    :meth:`nodes` and :meth:`facts` go on telling the truth, and :meth:`stop` ends whatever runs.
    """

    def __init__(
        self,
        home: Path,
        make_node: Callable[[str, Path], Node],
        *,
        has_front: bool,
        is_synchronous: bool = False,
    ) -> None:
        """Describe a cluster; nothing is touched yet.

        ``home`` is the folder of the first node; the others have theirs in it. ``make_node``
        describes a node of a name in a folder. ``is_synchronous``: whether commits wait for the replicas that run.
        """
        self._home = home
        self._make_node = make_node
        self._is_synchronous = is_synchronous
        self._has_front = has_front
        self.front: Front | None = None
        self.primary = self._new_node(1)
        self._nodes = {self.primary.name: self.primary}

    # --- from beginning to end -----------------------------------------------------------------------------------

    def start(self, replicas: int, prepare: Callable[[Server], None]) -> None:
        """Start the primary, let ``prepare`` do what it has to, and start the replicas behind it.

        Raises:
            InputError: a folder or a setting cannot be used.
            MeasurementError: a folder is in use, or a node does not start.

        """
        self._take_folders()
        self.primary.start()
        self.primary.keep_log_for([f"node{number}" for number in range(2, replicas + 2)])
        prepare(self.primary.server)
        if self._has_front:
            self.front = Front()
        for number in range(2, replicas + 2):
            node = self._nodes[f"node{number}"] = self._new_node(number)
            node.join(self.primary)
            self._front_of(node)
        self._settle()

    def stop(self) -> None:
        """End everything, and give the folders back; the first error is raised when all has been tried."""
        if self.front is not None:
            self.front.close()
        # The primary first, as its last words are for the replicas; its folder last, for the others are in it.
        home = self._nodes["node1"]
        steps: list[Callable[[], None]] = [node.resume for node in self._nodes.values()]
        steps += [
            self.primary.halt,
            *(node.stop for node in self._nodes.values() if node is not home),
            home.stop,
        ]
        errors = []
        for step in steps:
            try:
                step()
            except (NephoscopeError, OSError) as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _new_node(self, number: int) -> Node:
        path = self._home if number == 1 else self._home / f"node{number}"
        return self._make_node(f"node{number}", path)

    def _take_folders(self) -> None:
        """Take the folder of the first node, and see that it holds the database which took the last writes."""
        home = self.primary
        home.server.folder.take(home.server.account)
        numbers = sorted(
            int(folder.name.removeprefix("node"))
            for folder in self._home.glob("node*")
            if folder.name.removeprefix("node").isdecimal()
        )
        others = [self._new_node(number) for number in numbers]
        try:
            for node in others:
                node.server.folder.take(node.server.account)
            bring_home(home, others)
        finally:
            for node in others:
                node.server.folder.release()
        if home.server.folder.data.exists() and home.is_replica:
            raise MeasurementError(
                f"folder {self._home} holds a replica, and the database that it followed is gone: remove the folder"
            )

    # --- what there is -------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, Role]:
        """Tell the nodes, and what each takes."""
        return {name: "rw" if node is self.primary else "ro" for name, node in self._nodes.items()}

    def processes(self) -> tuple[int, ...]:
        """Find the processes of all nodes that run, with their descendants. For any thread."""
        pids = [node.server.pid for node in list(self._nodes.values())]
        return tuple(member for pid in pids if pid for member in processes.family(pid))

    def urls(self, role: Role, database: str) -> tuple[str, ...]:
        """Tell the URLs of a role. They hold the password: not for logs or messages."""
        if self.front is None:
            return (self.primary.server.url(database),) if role == "rw" else ()
        server = self.primary.server
        return tuple(server.url(database, endpoint.address) for endpoint in self.front.of(role))

    def facts(self) -> dict[str, object]:
        """Tell what is worth keeping with a measurement; nothing of it is secret."""
        facts = self.primary.server.facts()
        if self.front is not None:
            facts["nodes"] = {
                name: {"role": role, **self._nodes[name].facts()} for name, role in self.nodes().items()
            }
            facts["endpoints"] = {
                role: [endpoint.address for endpoint in self.front.of(role)] for role in ("rw", "ro")
            }
        return facts

    def node(self, name: str | None, role: Role = "rw") -> Node:
        """Find a node by its name, or the one that is meant where there is none: the primary, or the last replica."""
        if name is None and role == "rw":
            return self.primary
        if name is None:
            if not self._replicas():
                raise MeasurementError("the cluster has no read-only node")
            return self._replicas()[-1]
        if name not in self._nodes:
            raise MeasurementError(f"there is no node {name}: nodes are {', '.join(self._nodes)}")
        if role == "ro" and self._nodes[name] is self.primary:
            raise MeasurementError(f"{name} is the node that takes writes: only a read-only one will do")
        return self._nodes[name]

    def _replicas(self) -> list[Node]:
        return [node for node in self._nodes.values() if node is not self.primary]

    # --- one node ------------------------------------------------------------------------------------------------

    def restart(self, name: str | None) -> Began:
        """End a node in good order and start it again; done when it serves."""
        node = self._running(self.node(name))
        began = _engine.monotonic_ns()
        node.halt()
        return Began(node.name, began, self._bring_back(node))

    def start_node(self, name: str | None) -> Began:
        """Start a node that was stopped or killed, in its role; done when it serves."""
        node = self.node(name)
        if node.server.is_running:
            raise MeasurementError(f"{node.name} {'is paused' if node.is_paused else 'runs already'}")
        began = _engine.monotonic_ns()
        node.server.halt()  # what is left of one that ended by itself
        return Began(node.name, began, self._bring_back(node))

    def stop_node(self, name: str | None) -> Began:
        """End a node in good order; done when it has gone."""
        node = self._running(self.node(name))
        began = _engine.monotonic_ns()
        node.halt()
        self._settle()
        return Began(node.name, began, {})

    def kill(self, name: str | None) -> Began:
        """End a node at once, paused or not; done when all its processes have gone."""
        node = self.node(name)
        if not node.server.is_running:
            raise MeasurementError(f"{node.name} does not run")
        began = _engine.monotonic_ns()
        node.kill()
        self._settle()
        return Began(node.name, began, {})

    def pause(self, name: str | None) -> Began:
        """Let a node stand still, with its connections open."""
        node = self._running(self.node(name))
        began = _engine.monotonic_ns()
        node.pause()
        return Began(node.name, began, {})

    def resume(self, name: str | None) -> Began:
        """Let a paused node go on."""
        node = self.node(name)
        if not node.is_paused:
            raise MeasurementError(f"{node.name} is not paused")
        began = _engine.monotonic_ns()
        node.resume()
        return Began(node.name, began, {})

    def _running(self, node: Node) -> Node:
        if not node.is_running:
            raise MeasurementError(f"{node.name} {'is paused' if node.is_paused else 'does not run'}")
        return node

    def _bring_back(self, node: Node) -> dict[str, Any]:
        """Start a node in its role, and let everything that has to do with it find it."""
        how = "started"
        if node is self.primary:
            self._start_primary()
        elif self.primary.is_running:
            how = node.join(self.primary)
        elif node.has_data and node.is_replica:
            node.start()
        else:
            raise MeasurementError(f"{node.name} has to follow {self.primary.name}, which does not run")
        self._settle()
        return {"how": how}

    def _start_primary(self) -> None:
        port = self.primary.server.port
        self.primary.start()
        if self.primary.server.port == port:
            return
        if self.front is None:
            self.primary.halt()
            raise MeasurementError(f"somebody has taken port {port}, which the server had before")
        for replica in self._replicas():
            replica.follow(self.primary)

    # --- roles ---------------------------------------------------------------------------------------------------

    def promote(self, name: str | None) -> Began:
        """Make a replica the node that takes writes; done when all the others follow it.

        The old primary is stopped in good order, so that nothing is lost, where it runs. Where it is paused, or
        has ended, it is made sure that it has ended. The endpoint that takes writes is led away from it before.
        """
        front = self._need_front()
        new, old = self._candidate(name), self.primary
        is_planned = old.is_running
        if is_planned:
            # A primary that ends sends its last to whom it is connected with.
            new.catch_up(old, shown=False)
        began = _engine.monotonic_ns()
        front.rw.lead_to(None, cut=not is_planned)
        if is_planned:
            try:
                old.end_for(new)
            except NephoscopeError:
                self._settle()
                raise
            self._check_complete(new, old)
        else:
            old.kill()
        if self._is_synchronous:
            new.wait_for([])  # nobody follows it yet
        new.promote()
        self.primary = new
        front.rw.lead_to(new.address)
        promoted = _engine.monotonic_ns()
        ways = self._follow_all(new, old)
        self._settle()
        detail = {
            "from": old.name,
            "planned": is_planned,
            "promoted_s": (promoted - began) / 1e9,
            "how": ways,
        }
        return Began(new.name, began, detail)

    def _check_complete(self, new: Node, old: Node) -> None:
        """See that a replica has received all of a primary that has ended; else let the primary go on."""
        if not new.has_all_of(old):
            self._bring_back(old)
            raise MeasurementError(f"{new.name} has not received all that {old.name} had: {old.name} goes on")

    def _candidate(self, name: str | None) -> Node:
        """Find the replica to promote: the one that has received most, where none is named."""
        if name is not None:
            return self._running(self.node(name, "ro"))
        running = [node for node in self._replicas() if node.is_running]
        if not running:
            raise MeasurementError("no read-only node runs that could be promoted")
        return max(running, key=lambda node: node.received())

    def _follow_all(self, new: Node, old: Node) -> dict[str, str]:
        """Let all other nodes follow a new primary; tells how each could."""
        replicas = self._replicas()
        new.keep_log_for([node.name for node in replicas])
        ways = {}
        others = [node for node in replicas if node is not old]
        for node in others:
            node.follow(new)
        for node in others:
            if node.is_running:
                ways[node.name] = self._follow(new, node)
        ways[old.name] = old.join(new)
        return ways

    def _follow(self, new: Node, node: Node) -> str:
        try:
            node.catch_up(new)
        except LostTheWayError as error:  # it had more of the old primary's log than the new one
            _log.info("%s: taken back, or copied anew", error)
            node.halt()
            return node.join(new)
        return "streaming"

    # --- how many ------------------------------------------------------------------------------------------------

    def add_node(self, name: str | None) -> Began:
        """Add a replica; done when it serves what the primary had at the end of its copy."""
        self._need_front()
        self._running(self.primary)
        free = next(number for number in range(1, 1000) if f"node{number}" not in self._nodes)
        if name not in {None, f"node{free}"}:
            raise MeasurementError(f"the next node is node{free}, and not {name}")
        node = self._new_node(free)
        self.primary.keep_log_for([replica.name for replica in (*self._replicas(), node)])
        began = _engine.monotonic_ns()
        try:
            how = node.join(self.primary)
        except BaseException:
            node.stop()
            with contextlib.suppress(NephoscopeError):
                self.primary.keep_log_for([replica.name for replica in self._replicas()])
            raise
        self._nodes[node.name] = node
        self._front_of(node)
        self._settle()
        return Began(node.name, began, {"how": how})

    def remove_node(self, name: str | None) -> Began:
        """Take a replica away, with its endpoint and its data."""
        front = self._need_front()
        node = self.node(name, "ro")
        if node.name == "node1":  # the folders of the others are in its own
            raise MeasurementError("node1 cannot be removed: its folder is that of the whole cluster")
        began = _engine.monotonic_ns()
        front.remove(node.name)
        del self._nodes[node.name]
        self._settle()
        node.stop()
        if self.primary.is_running:
            self.primary.keep_log_for([replica.name for replica in self._replicas()])
        shutil.rmtree(node.server.folder.path, ignore_errors=True)
        return Began(node.name, began, {})

    # --- settings ------------------------------------------------------------------------------------------------

    def set(self, settings: Mapping[str, SettingValue]) -> Began:
        """Set parameters on every node; nodes are restarted where one of the parameters needs that.

        Where a node refuses them, those that have them already get back what they had.
        """
        for node in self._nodes.values():
            self._running(node)
        restarts = self.primary.server.needs_restart(settings)
        replicas = self._replicas()
        last = self.primary.restarts_last(settings)
        order = [*replicas, self.primary] if last else [self.primary, *replicas]
        before = {node.name: dict(node.server.settings) for node in self._nodes.values()}
        began = _engine.monotonic_ns()
        for number, node in enumerate(order, start=1):
            if restarts:
                node.server.configure(settings)
            try:
                if restarts:
                    self._restart_in_place(node)
                else:
                    node.reload(settings)
            except NephoscopeError as error:
                for changed in order[:number]:
                    changed.server.configure_anew(before[changed.name])
                if not restarts:
                    raise
                self._restart_in_place(node)
                raise MeasurementError(f"{node.name} does not start with these settings: {error}") from error
        self._settle()
        return Began(None, began, {"restarted": [node.name for node in order] if restarts else []})

    def _restart_in_place(self, node: Node) -> None:
        """Restart a node, whose data is in order."""
        if node is self.primary:
            node.halt()
            self._start_primary()
            node.after_restart()
            return
        if node.is_running:
            node.catch_up(self.primary)
        node.halt()
        node.start()
        node.catch_up(self.primary)

    # --- endpoints and agreement ---------------------------------------------------------------------------------

    def _need_front(self) -> Front:
        if self.front is None:
            raise MeasurementError(
                "the study asks for a single server without a front: system.replicas, system.front"
            )
        return self.front

    def _front_of(self, replica: Node) -> None:
        """Give a new replica an endpoint."""
        if self.front is not None:
            self.front.add(replica.name).lead_to(replica.address)

    def _settle(self) -> None:
        """Lead the endpoints to where their nodes are now, and let commits wait for whom they have to."""
        if self.front is not None:
            self.front.rw.lead_to(self.primary.address)
            self._pass_on_reads(self.front)
            for name, endpoint in self.front.ro.items():
                endpoint.lead_to(self._nodes[name].address)
        if self._is_synchronous and self.primary.server.is_running:
            self.primary.wait_for([node.name for node in self._replicas() if node.server.is_running])

    def _pass_on_reads(self, front: Front) -> None:
        """Give the endpoint of a replica that has become the primary to the node that was the primary before.

        Until that one runs, the reads go on at the new primary.
        """
        homeless = [node for node in self._replicas() if node.name not in front.ro and node.is_running]
        if homeless and self.primary.name in front.ro:
            front.hand_over(self.primary.name, homeless[0].name)
            front.ro[homeless[0].name].lead_to(homeless[0].address, cut=True)
