"""How many sessions a server accepts, and which steps of a study want more; known before data is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.dialects import DIALECTS
from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.demand import Room
from nephoscope.measuring.manifest import reads_of
from nephoscope.settings.base import ROLES
from nephoscope.settings.units import describe_count
from nephoscope.settings.variables import redacted_url
from nephoscope.systems.tenants import tenants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.dialects import Dialect
    from nephoscope.evaluators.base import Evaluator
    from nephoscope.evaluators.demand import Demand
    from nephoscope.settings.base import Role
    from nephoscope.study.reading import Study
    from nephoscope.study.workload import Workload
    from nephoscope.systems.base import System

_BESIDE = 1
"""A run's connections to each server besides its load's: the monitor's."""
_PATIENCE_S = 5.0
"""The timeout of a server's answer, in s; a server that does not answer is reported when its data is checked."""


@dataclass(frozen=True)
class _Unfit:
    """A step that wants more sessions than a server accepts, or has free."""

    index: int
    evaluator: str
    demand: Demand
    wanted: int
    url: str
    room: Room

    def __str__(self) -> str:
        where = redacted_url(self.url)
        wanted = describe_count(self.wanted, "session")
        return f"measure.{self.index} ({self.evaluator}): {self.demand.step} wants {wanted} at {where}"


class Rooms:
    """The room of each server of a study, as it was before the study's load."""

    def __init__(self, study: Study, system: System, workload: Workload) -> None:
        """Ask the servers of the system, and those that tenants have of their own."""
        self._balance = study.load.balance
        tenants = tenants_of(study.tenants, system) if study.tenants.share == "server" else ()
        self._servers: list[Mapping[Role, Sequence[str]]] = [
            {"rw": one.rw, "ro": one.ro} for one in tenants
        ] or [{"rw": system.rw, "ro": system.ro}]
        writers = len(system.rw) * study.load.writer_weight
        on_rw = {"rw": 1.0, "ro": 0.0, "all": writers / (writers + len(system.ro))}[reads_of(study, system)]
        on_rw = on_rw if system.ro else 1.0
        self._reads: Mapping[Role, float] = {"rw": on_rw, "ro": 1 - on_rw}
        about = workload.description
        self._reading = {str(one["name"]) for one in about["transactions"] if one["read_only"]}
        urls = dict.fromkeys(url for server in self._servers for of in server.values() for url in of)
        dialect = DIALECTS.get(about["dialect"])
        patience_s = min(study.load.connect_timeout, _PATIENCE_S)
        found = {url: room_of(url, dialect, patience_s) for url in urls} if dialect is not None else {}
        self._rooms = {url: room for url, room in found.items() if room is not None}

    def _shares(self, mix: Mapping[str, float]) -> dict[Role, float]:
        """Return the roles that a mix's transactions run in, each with the share of sessions that connect there."""
        found = [
            self._reads if name in self._reading else {"rw": 1.0}
            for name, weight in mix.items()
            if weight > 0
        ]
        shares = {role: max((one.get(role, 0.0) for one in found), default=0.0) for role in ROLES}
        return {role: share for role, share in shares.items() if share > 0}

    def of(self, mix: Mapping[str, float]) -> Room | None:
        """Give the room for the sessions of the first tenant, on the server that has least of it; None if unknown."""
        found = []
        for role, share in self._shares(mix).items():
            urls = self._servers[0][role]
            many = 1 if self._balance == "first" else len(urls)
            found += [self._rooms[url].shared(share / many) for url in urls if url in self._rooms]
        return min(found, key=lambda room: room.sessions, default=None)

    def _wanted(self, demand: Demand) -> Iterator[tuple[str, int]]:
        """Tell the connections that a step wants of each endpoint."""
        together = len(self._servers) == 1
        for place, server in enumerate(self._servers):
            sessions = sum(demand.sessions) if together else sum(demand.sessions[place : place + 1])
            for role, share in self._shares(demand.mix).items():
                urls = server[role][:1] if self._balance == "first" else server[role]
                yield from ((url, math.ceil(sessions * share / len(urls))) for url in urls)

    def check(self, evaluators: Sequence[Evaluator], sessions: int) -> list[str]:
        """Check every step against the room; return warnings of steps that do not fit beside others' sessions.

        ``sessions`` are those of an open load. Raises ``InputError`` that names what can never fit.
        """
        never = self._unfit(evaluators, sessions, lambda room: room.sessions)
        if never:
            raise InputError(
                "\n".join(
                    f"{one}, and it takes {one.room.sessions} beside the one that samples its metrics: {one.room.words}"
                    for one in never
                )
            )
        return [
            f"{one}, and {one.room.free} of its {one.room.sessions} places are free now: {one.room.words}"
            for one in self._unfit(evaluators, sessions, lambda room: room.free)
        ]

    def _unfit(
        self, evaluators: Sequence[Evaluator], sessions: int, places: Callable[[Room], int]
    ) -> list[_Unfit]:
        """Find the step of each evaluator that exceeds the room by most."""
        found: dict[int, _Unfit] = {}
        for index, evaluator in enumerate(evaluators):
            for demand in evaluator.demands(sessions):
                for url, wanted in self._wanted(demand):
                    room = self._rooms.get(url)
                    if room is None or wanted <= places(room):
                        continue
                    if index not in found or wanted > found[index].wanted:
                        found[index] = _Unfit(index, evaluator.name, demand, wanted, url, room)
        return list(found.values())


def room_of(url: str, dialect: Dialect, patience_s: float) -> Room | None:
    """Ask a server for its room; None where it has no limit that is known, or cannot be asked.

    A connection pool before the server accepts more sessions than the server: the room is not known then.
    """
    if dialect.room is None:
        return None
    admins: list[_engine.Admin] = []
    try:
        admins.extend(
            _engine.Admin(url, connect_timeout_s=patience_s, answer_timeout_s=patience_s) for _ in range(2)
        )
        first, second = (admin.query(dialect.session)[1] for admin in admins)
        if first == second:
            return None
        _, rows = admins[0].query(dialect.room)
    except MeasurementError:
        return None
    finally:
        for admin in admins:
            admin.close()
    limits = [(str(words), int(most or 0), int(taken or 0)) for words, most, taken in rows]
    if not limits:
        return None
    words, most, _ = min(limits, key=lambda limit: limit[1])
    # The other session that asks occupies one.
    free = min(most - taken + 1 for _, most, taken in limits)
    return Room(max(most - _BESIDE, 0), max(min(free, most) - _BESIDE, 0), words)
