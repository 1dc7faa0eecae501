"""What is asked of a run's loads, over time, and how the engine is told of changes within a phase."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nephoscope.settings.courses import LoadCourse, at_once, described, load_of, steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope import _engine
    from nephoscope.settings.loads import Load


class AskedLoads:
    """The courses of all tenants' and streams' loads."""

    def __init__(self, tenants: Sequence[str], streams: Sequence[str]) -> None:
        """Begin with nothing asked for; the first stream is the first tenant."""
        self._tenants = tenants
        self._courses = {name: LoadCourse() for name in (*tenants, *streams)}
        self._described: dict[int, dict[str, Any]] = {}

    def phase(
        self, number: int, loads: Mapping[str, Load], at_s: float, seconds: float
    ) -> Iterator[tuple[float, str]]:
        """Keep what a phase asks for from a time on; gives the steps of its transitions, each with its time.

        ``loads`` is by tenant, with ``"*"`` for all of them. Raises ``ValueError`` where a transition has no way.
        """
        told = {tenant: described(load, seconds) for tenant, load in loads.items()}
        self._described[number] = {tenant: asked for tenant, asked in told.items() if asked}
        for tenant in loads:
            asked = load_of(told[tenant])
            for name in self._tenants if tenant == "*" else (tenant,):
                course = self._courses[name]
                for offset, step in steps(course.at(at_s), asked):
                    yield at_s + offset, change_of({name: step})
                course.add(at_s, asked)

    def described(self, number: int) -> Mapping[str, Any]:
        """Describe what a phase asks for at its beginning, by tenant, for its event."""
        return self._described.get(number, {})

    def at(self, time_s: float) -> Load:
        """Return what is asked of the first tenant at a time, in seconds since the start of the load."""
        return self._courses[self._tenants[0]].at(time_s)

    def steer(self, run: _engine.Run, load: Load) -> float:
        """Change the first tenant's load within the present phase of a run; gives when that takes effect.

        Raises ``ValueError`` where a transition has no way.
        """
        name = self._tenants[0]
        moves = list(steps(self.at(run.elapsed()), load))
        at_s = run.overtake(change_of({name: at_once(load)}))
        for offset, step in moves:
            run.overtake(change_of({name: step}), at_s=at_s + offset)
        self._courses[name].add(at_s, load)
        return at_s


def change_of(loads: Mapping[str, Load]) -> str:
    """Describe a change of loads within a phase, for the engine."""
    changed = {tenant: load.to_engine(None) for tenant, load in loads.items()}
    return json.dumps({"name": "change", "kind": "measure", "loads": changed, "seconds": None})
