"""How nodes come while the load runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import Acting
from nephoscope.interrupts import Interrupted
from nephoscope.settings.actions import Action
from nephoscope.settings.units import describe_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.evaluators.base import Means
    from nephoscope.evaluators.scaleout.settings import ScaleoutSettings
    from nephoscope.settings.loads import Endpoints
    from nephoscope.systems.base import Done


_PATIENCE_S = 30.0
"""How long an action is waited for that was interrupted, before what it has done is undone; and then sessions that are
still at a node."""


BEGIN_S = 0.5
"""How long the load runs at least before a node is removed, in s."""


@dataclass
class NodesCourse:
    """The read-only nodes that are added and removed; at the end the system has its first nodes again."""

    means: Means
    settings: ScaleoutSettings
    index: int
    added: list[str | None] = field(default_factory=list)
    """The nodes that were added and are still there; None for one without a name."""
    removed: int = 0
    """The number of earlier nodes, which are removed during the measurement."""
    acting: Acting[Done] | None = None

    @property
    def kind(self) -> str:
        """What a node is called."""
        return "node" if self.means.provider.adds() == "rw" else "read-only node"

    def endpoints(self) -> tuple[str, ...]:
        """Return the URLs of the present endpoints of nodes."""
        return self.means.provider.endpoints("ro")

    def nodes(self) -> int:
        """Count the present nodes."""
        return len(self.endpoints())

    def led_to(self, urls: Sequence[str]) -> Endpoints:
        """Describe the system with these endpoints of nodes."""
        return self.means.endpoints(urls, self.settings.reads, self.means.provider.adds())

    def take_all_away(self) -> None:
        """Remove the present read-only nodes if the provider can; else start with them."""
        provider = self.means.provider
        for node in [name for name, role in provider.nodes().items() if role == "ro"]:
            if Action.REMOVE_NODE not in provider.actions():
                return
            try:
                self._act(Action.REMOVE_NODE, node)
            except MeasurementError as error:
                if self.acting is not None and self.acting.goes_on:
                    raise
                self.means.load.note(
                    "warning", message=f"{node} stays, and is there from the beginning: {error}"
                )
                return
            self.removed += 1

    def add(self, repetition: int) -> None:
        """Add a node and direct load to it. Raises ``MeasurementError`` if it does not come to serve."""
        load, limit_s = self.means.load, self.settings.limit
        before = self.endpoints()
        done = self._act(Action.ADD_NODE, None)
        self.added.append(done.node)
        now = self.endpoints()
        if not set(now) - set(before):
            raise MeasurementError("a node was added, and there is no endpoint that was not there before")
        load.reached_s = None
        routed_s = load.set(endpoints=self._led_to_new(before, now, done.node))
        load.await_told(lambda: load.reached_s is not None, limit_s)
        if load.reached_s is None:
            raise MeasurementError(f"no transaction was committed at the new node within {limit_s:g} s")
        began_s = (done.began_ns - load.origin_ns) / 1e9
        times = {"routed_s": routed_s, "reached_s": load.reached_s, "serve_s": load.reached_s - began_s}
        self._note(done, repetition, **times)

    def _led_to_new(self, before: tuple[str, ...], now: tuple[str, ...], node: str | None) -> Endpoints:
        """Describe the system with the endpoint that has come, at which a first transaction is waited for."""
        del before, node
        return self.led_to(now)

    def _note(self, done: Done, repetition: int, **times: float) -> None:
        """Record that a node has come or gone, and what was moved to it or from it as far as the provider knows."""
        self.means.load.note(
            "scaling",
            done.began_ns,
            measure=self.index,
            repetition=repetition,
            action=str(done.action),
            node=done.node,
            nodes=self.nodes(),
            took_s=(done.ended_ns - done.began_ns) / 1e9,
            moved_bytes=done.detail.get("bytes"),
            **times,
        )

    def take_away(self, repetition: int, limit_s: float) -> bool:
        """Take the nodes away that were added, last first; says whether there is to be another repetition.

        Sessions have so long to leave each of them.
        """
        last = repetition == self.settings.repetitions
        if self.added and Action.REMOVE_NODE not in self.means.provider.actions():
            left = (
                f"{describe_count(len(self.added), self.kind)} of this run cannot be taken away: the provider"
            )
            message = f"{left} {self.means.provider.name} cannot {Action.REMOVE_NODE}"
            self.means.load.note("warning", message=message)
            self.added.clear()
            return False
        while self.added:
            self._take_last_away(repetition, limit_s)
            self.added.pop()
        return not last

    def _take_last_away(self, repetition: int, limit_s: float) -> None:
        """Remove the node that was added last, once no session is there any more."""
        del repetition
        self.leave(self._without(self.added[-1]), limit_s)
        self._act(Action.REMOVE_NODE, self.added[-1])

    def bring_back(self) -> None:
        """Restore the former number of nodes. Raises ``MeasurementError``."""
        while self.removed:
            self._act(Action.ADD_NODE, None)
            self.removed -= 1

    def end(self) -> None:
        """Remove all added nodes, whatever has happened; errors become warnings.

        Those that were there before are not brought back where something has happened: the run is over then, and with
        it the systems that can take nodes away which they have not added.
        """
        try:
            if self.acting is not None:
                self.acting.give_up(self.means.provider, _PATIENCE_S)
            self._note_late_node()
            self.take_away(self.settings.repetitions, _PATIENCE_S)
        except MeasurementError as error:
            self.means.load.note("warning", message=f"the {self.kind}s are not those of before: {error}")
        except Interrupted:
            self.means.load.note("warning", message=f"interrupted: the {self.kind}s are not those of before")
            raise
        finally:
            with contextlib.suppress(MeasurementError):
                endpoints = self.means.endpoints(self.endpoints(), role=self.means.provider.adds())
                self.means.load.set(endpoints=endpoints)

    def _note_late_node(self) -> None:
        """Record a node whose addition or removal was interrupted and has happened by now."""
        if self.acting is None:
            return
        with contextlib.suppress(MeasurementError):
            done = self.acting.result()
            if done.action is Action.ADD_NODE and done.node not in self.added:
                self.added.append(done.node)
            elif done.action is Action.REMOVE_NODE and done.node in self.added:
                self.added.remove(done.node)

    def leave(self, stay: tuple[str, ...], limit_s: float) -> None:
        """Direct the load to the nodes that stay, and wait until no session is at another: that one will be removed."""
        load = self.means.load
        with contextlib.suppress(MeasurementError):
            if not load.follow(load.set(endpoints=self.led_to(stay)), limit_s):
                message = (
                    f"after {limit_s:g} s there were still sessions at a node that was going to be taken away"
                )
                load.note("warning", message=message)

    def _without(self, node: str | None) -> tuple[str, ...]:
        """Return the URLs of the read-only endpoints that stay when a node is removed."""
        names = [name for name, role in self.means.provider.nodes().items() if role == "ro"]
        urls = self.endpoints()
        if len(names) == len(urls) and node in names:
            return tuple(url for name, url in zip(names, urls, strict=True) if name != node)
        return urls[:-1]

    def _act(self, action: Action, node: str | None) -> Done:
        """Act beside the load, with a timeout. Raises ``MeasurementError``."""
        provider = self.means.provider
        self.acting = Acting(lambda _: provider.act(action, node=node), str(action))
        done = self.acting.wait(self.means.load, self.settings.limit)
        self.acting = None
        return done


class RingCourse(NodesCourse):
    """The nodes of a ring, all of which take writes: they leave under load, and sessions see what comes of that."""

    def endpoints(self) -> tuple[str, ...]:
        """Return the one URL of the ring as it is."""
        return self.means.provider.endpoints("rw")

    def nodes(self) -> int:
        """Count all nodes."""
        return len(self.means.provider.nodes())

    def take_all_away(self) -> None:
        """Begin with the nodes that there are: the data is on them."""

    def leave(self, stay: tuple[str, ...], limit_s: float) -> None:
        """Leave sessions where they are."""

    def _led_to_new(self, before: tuple[str, ...], now: tuple[str, ...], node: str | None) -> Endpoints:
        """Describe the ring as it was, and the new node by itself: of the ring's URL nobody could tell who served."""
        return self.led_to(now if node is None else (*before, self.means.provider.endpoint_of(node)))

    def add(self, repetition: int) -> None:
        """Add a node; when it has served, sessions are spread over all nodes."""
        super().add(repetition)
        self._spread()

    def _take_last_away(self, repetition: int, limit_s: float) -> None:
        del limit_s
        self._note(self._act(Action.REMOVE_NODE, self.added[-1]), repetition)
        self._spread()

    def _spread(self) -> None:
        """Lead the load to the ring as it is, and wait until every session has followed."""
        load = self.means.load
        load.follow(load.set(endpoints=self.led_to(self.endpoints())), self.settings.limit)
