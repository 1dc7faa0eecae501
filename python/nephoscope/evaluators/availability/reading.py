"""Availability, yield, harvest, MTTF and MTTR in a stored run (METRICS, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.evaluators.availability.spans import Down, ServiceCourse, down_together, downs_of, total
from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.points import measured_phases
from nephoscope.evaluators.probed import AvailabilityProbes, done_in, errors_between
from nephoscope.scoring.availability import in_parallel, in_series, steady_availability
from nephoscope.settings.base import ROLES
from nephoscope.settings.units import describe_count
from nephoscope.statistics import availability_of_cycles, clustered_interval, mean_time
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.evaluators.availability.settings import AvailabilitySettings
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.base import Role
    from nephoscope.store import Phase, StoredRun

_FEW = 2
"""Fewer interruptions than this have no interval."""


@dataclass(frozen=True)
class _Observed:
    """What probes saw of a measured phase."""

    phase: Phase
    endpoints: Mapping[str, Mapping[str, Sequence[Down]]]
    """The times down by role and endpoint."""

    def course(self, role: str) -> ServiceCourse:
        downs = down_together(list(self.endpoints[role].values()))
        return ServiceCourse(self.phase.start_s, self.phase.end_s, tuple(downs))


def read_availability(stored: Stored, settings: AvailabilitySettings) -> tuple[dict[str, Any], list[str]]:
    """Read the figures of an entry of ``[[measure]]``, and warnings; nothing where no repetition was whole."""
    phases, warnings = measured_phases(stored.run, stored.index)
    probes = AvailabilityProbes(stored.run)
    observed = [_observe(probes, settings, phase) for phase in phases]
    if not observed:
        return {}, warnings
    roles = [role for role in ROLES if role in probes.roles and all(one.endpoints[role] for one in observed)]
    by_role = {role: _role(role, observed) for role in roles}
    main = next((role for role in (_role_of(settings), *ROLES) if role in by_role), None)
    found = {
        "failures": settings.source,
        "late_s": settings.late,
        "load": "closed" if settings.rate is None else "open",
        "roles": list(by_role.values()),
        "endpoints": list(chain.from_iterable(_endpoints(role, observed) for role in roles)),
        "harvest": _harvest(observed, roles),
        "yield": _yield(stored, settings, observed, main),
        "predicted": list(_predictions(stored, settings, by_role[main] if main else None)),
        "durability": _durability(stored, phases),
        "repetitions": [_repetition(stored.run, one, roles) for one in observed],
    }
    return found, [*warnings, *_warnings(found)]


def _observe(probes: AvailabilityProbes, settings: AvailabilitySettings, phase: Phase) -> _Observed:
    endpoints = {
        role: {
            node: downs_of(of_node, phase.start_s, phase.end_s, late_s=settings.late, calm_s=settings.calm)
            for node, of_node in probes.of(role)
            if ((of_node.due_s >= phase.start_s) & (of_node.due_s < phase.end_s)).any()
        }
        for role in probes.roles
    }
    return _Observed(phase, endpoints)


def _role_of(settings: AvailabilitySettings) -> Role:
    """Return the role whose nodes fail, as far as the targets name it."""
    targets = {settings.target_of(failure) for failure in settings.script} or set(settings.targets)
    return "ro" if targets == {"ro"} else "rw"


# --- by time ----------------------------------------------------------------------------------------------------


def _role(role: str, observed: Sequence[_Observed]) -> dict[str, Any]:
    """Sum up a role over all repetitions: it is down while none of its endpoints serves."""
    courses = [one.course(role) for one in observed]
    seconds, down_s = sum(one.seconds for one in courses), sum(total(one.downs) for one in courses)
    downs = [down for one in courses for down in one.downs]
    up_s = seconds - down_s
    share = availability_of_cycles(up_s, down_s, [cycle for one in courses for cycle in one.cycles])
    mttf = mean_time(up_s, [up for one in courses for up in one.ups])
    mttr = mean_time(down_s, [repair for one in courses for repair in one.repairs])
    return {
        "role": role,
        "endpoints": max(len(one.endpoints[role]) for one in observed),
        "seconds": seconds,
        "down_s": down_s,
        "interruptions": len(downs),
        "unended": sum(not down.ended for down in downs),
        "cycles": share.cycles,
        "availability": share.value,
        "availability_ci95": share.ci95,
        "mttf_s": mttf.value,
        "mttf_ci95": mttf.ci95,
        "mttr_s": mttr.value,
        "mttr_ci95": mttr.ci95,
        "resolution_s": max((down.resolution_s for down in downs), default=None),
    }


def _endpoints(role: str, observed: Sequence[_Observed]) -> Iterator[dict[str, Any]]:
    for node in observed[0].endpoints[role]:
        downs = [one.endpoints[role].get(node, ()) for one in observed]
        seconds = sum(one.phase.end_s - one.phase.start_s for one in observed)
        down_s = sum(map(total, downs))
        yield {
            "role": role,
            "node": node,
            "down_s": down_s,
            "interruptions": sum(map(len, downs)),
            "availability": 1 - down_s / seconds,
        }


def _harvest(observed: Sequence[_Observed], roles: Sequence[str]) -> float | None:
    """Return the share of endpoints that serve, over time; None where one endpoint is all that there is."""
    shares = [told["availability"] for role in roles for told in _endpoints(role, observed)]
    return fmean(shares) if len(shares) > 1 else None


# --- by requests ------------------------------------------------------------------------------------------------


def _yield(
    stored: Stored, settings: AvailabilitySettings, observed: Sequence[_Observed], main: str | None
) -> dict[str, Any]:
    """Count what was offered and what was answered, by the window of each failure, over all repetitions."""
    rows = _Requests(stored)
    windows: list[dict[str, int]] = []
    good: list[int] = []
    failures = 0
    totals: dict[str, int] = dict.fromkeys(("committed", "aborted", "failed", "unended"), 0)
    for one in observed:
        course = one.course(main) if main else ServiceCourse(one.phase.start_s, one.phase.end_s, ())
        failures += len(course.downs)
        of_windows = rows.by_window(one.phase, course.windows)
        windows += of_windows
        for name in totals:
            totals[name] += sum(window[name] for window in of_windows)
        good += rows.good(one.phase, course.windows, round(settings.slo * 1e9))
    answered = [window["committed"] + window["aborted"] for window in windows]
    offered = [sum(window.values()) for window in windows]
    told: dict[str, Any] = {"offered": sum(offered), **totals, "errors": _errors(stored.run, observed)}
    told |= _share("share", answered, offered, failures)
    wanted = [all_of - window["aborted"] for all_of, window in zip(offered, windows, strict=True)]
    return told | {"slo_s": settings.slo, "good": sum(good)} | _share("good_share", good, wanted, failures)


def _share(name: str, hits: Sequence[int], trials: Sequence[int], failures: int) -> dict[str, Any]:
    """Return a share with its interval, in which what lies between two failures counts as alike."""
    hit, tried = np.asarray(hits, np.int64), np.asarray(trials, np.int64)
    if not tried.sum():
        return {name: None, f"{name}_ci95": None}
    # An answer may be in the interval after that of its arrival.
    share = min(float(hit.sum() / tried.sum()), 1.0)
    known = failures >= _FEW and 0 < share < 1
    return {name: share, f"{name}_ci95": clustered_interval(hit, tried) if known else None}


class _Requests:
    """The transactions of a run, by the time at which they ended."""

    def __init__(self, stored: Stored) -> None:
        names = ("phase", "start_s", "end_s", "committed", "aborted", "failed", "unstarted")
        self._columns = {name: stored.run.intervals.column(name).to_numpy() for name in names}
        self._metrics = ClientMetrics(stored.run)
        self._run = stored.run

    def by_window(self, phase: Phase, windows: Sequence[tuple[float, float]]) -> list[dict[str, int]]:
        """Count by outcome; ``unended`` had not started or not ended with the phase, and is in the last window."""
        of = self._columns
        rows = of["phase"] == phase.number
        middles = (of["start_s"][rows] + of["end_s"][rows]) / 2
        places = np.clip(np.searchsorted([start for start, _ in windows], middles, "right") - 1, 0, None)
        counts = {
            name: np.bincount(places, of[name][rows], len(windows)).astype(int)
            for name in ("committed", "aborted", "failed")
        }
        found = [{name: int(count[place]) for name, count in counts.items()} for place in range(len(windows))]
        ended = sum(sum(window.values()) for window in found)
        arrivals = int(self._metrics.during("arrivals", phase.start_s, phase.end_s)[1].sum())
        unended = max(int(of["unstarted"][rows].sum()), arrivals - ended, 0)
        return [{**window, "unended": unended if window is found[-1] else 0} for window in found]

    def good(self, phase: Phase, windows: Sequence[tuple[float, float]], slo_ns: int) -> list[int]:
        """Count what was committed within a latency."""
        selection = Selection(phases=frozenset({phase.number}))
        found = self._run.merged_by_window(windows, selection)
        return [histogram.count_up_to(slo_ns) if histogram is not None else 0 for histogram in found]


def _errors(run: StoredRun, observed: Sequence[_Observed]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in observed:
        for name, count in errors_between(run, one.phase.start_s, one.phase.end_s).items():
            counts[name] = counts.get(name, 0) + count
    return counts


# --- what was foretold ------------------------------------------------------------------------------------------


def _predictions(
    stored: Stored, settings: AvailabilitySettings, measured: Mapping[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Foretell the availability from the laws, from the schedule as it was done, and from given failure data.

    ``measured`` is the role whose nodes fail; its MTTR stands in where none is known beforehand.
    """
    schedules = list(_events(stored, "schedule"))
    nodes = max((int(event.get("nodes", 1)) for event in schedules), default=1)
    measured_mttr = measured["mttr_s"] if measured else None
    sources: list[tuple[str, float | None, float | None]] = []
    if settings.mttf is not None:
        sources.append(("laws", settings.mttf.mean, settings.mttr.mean if settings.mttr else None))
    sources.append(("schedule", *_as_done(stored, settings, schedules, measured)))
    if settings.given is not None:
        sources.append(("given", settings.given.mttf, settings.given.mttr))
    for source, mttf_s, mttr_s in sources:
        if mttf_s is None:
            continue
        repair_s = mttr_s if mttr_s is not None else measured_mttr
        told = {"source": source, "nodes": nodes, "mttf_s": mttf_s, "mttr_s": repair_s}
        told |= {"measured_mttr": mttr_s is None, **dict.fromkeys(("node", "serial", "parallel"))}
        told |= {
            "role": measured["role"] if measured else None,
            "measured": measured["availability"] if measured else None,
        }
        if repair_s is not None:
            node = steady_availability(mttf_s, repair_s)
            told |= {
                "node": node,
                "serial": in_series([node] * nodes),
                "parallel": in_parallel([node] * nodes),
            }
        yield told


def _as_done(
    stored: Stored,
    settings: AvailabilitySettings,
    schedules: Sequence[Mapping[str, Any]],
    measured: Mapping[str, Any] | None,
) -> tuple[float | None, float | None]:
    """Return MTTF and MTTR of a target by the failures that were done; None where there are none.

    Where the role that was measured is a target, of that one alone. The MTTR is None where the schedule does not say
    how long a node is down; then the measured one counts as down.
    """
    planned = {
        (event.get("repetition"), number): failure
        for event in schedules
        for number, failure in enumerate(event.get("planned", ()))
    }
    places = {(event.get("repetition"), event.get("failure")) for event in _events(stored, "fault")}
    role = measured["role"] if measured else None
    targets = {failure["target"] for failure in planned.values()}
    targets = {role} & targets or targets
    done = [found for place, found in planned.items() if place in places and found["target"] in targets]
    if not done:
        return None, None
    waits = [float(failure["for_s"]) for failure in done if failure["for_s"] is not None]
    watched_s = len(targets) * len(schedules) * settings.duration
    repair_s = fmean(waits) if len(waits) == len(done) else None
    down_s = sum(waits) + (len(done) - len(waits)) * ((measured["mttr_s"] if measured else None) or 0.0)
    return max(watched_s - down_s, 0.0) / len(done), repair_s


# --- what was done ----------------------------------------------------------------------------------------------


def _events(stored: Stored, name: str) -> Iterator[Mapping[str, Any]]:
    for event in stored.run.events:
        if event.get("event") == name and event.get("measure") == stored.index:
            yield event


def _durability(stored: Stored, phases: Sequence[Phase]) -> dict[str, int] | None:
    """Add up what became of the probes' writes; None where no repetition could tell."""
    repetitions = {phase.labels.get("repetition") for phase in phases}
    told = [event for event in _events(stored, "durability") if event.get("repetition") in repetitions]
    names = ("acknowledged", "lost", "indeterminate")
    return {name: sum(int(event[name]) for event in told) for name in names} if told else None


def _repetition(run: StoredRun, one: _Observed, roles: Sequence[str]) -> dict[str, Any]:
    """Tell what was done in a repetition, and when each role was down; times in s since the start of the load."""
    phase = one.phase
    return {
        "repetition": int(phase.labels.get("repetition", 1)),
        "start_s": phase.start_s,
        "end_s": phase.end_s,
        "down": {role: [[down.start_s, down.end_s] for down in one.course(role).downs] for role in roles},
        "done": done_in(run, phase),
        "skipped": sum(
            event.get("event") == "failure_skipped"
            and event.get("repetition") == phase.labels.get("repetition")
            for event in run.events
        ),
    }


_LATE_SHARE = 0.1


def _warnings(found: Mapping[str, Any]) -> Iterator[str]:
    """Say what keeps the figures from being those of the schedule."""
    failures = [done for one in found["repetitions"] for done in one["done"] if done["what"] == "failure"]
    seen = sum(role["interruptions"] for role in found["roles"])
    if failures and not seen:
        yield f"availability: of {describe_count(len(failures), 'failure')} no interruption of a role was seen"
    if skipped := sum(one["skipped"] for one in found["repetitions"]):
        yield f"availability: {describe_count(skipped, 'failure')} skipped, as the node was down already"
    late = [done["at_s"] - done["due_s"] for done in failures if done["due_s"] is not None]
    if late and max(late) > _late_limit(found):
        yield f"availability: a failure was {max(late):.2g} s late, as another action was under way"
    for role in found["roles"]:
        if role["unended"]:
            unended = describe_count(role["unended"], "interruption")
            yield (
                f"availability of {role['role']}: {unended} had not ended with the measured time: the time"
                " counts, and no repair"
            )
        if 0 < role["cycles"] < _FEW:
            yield f"availability of {role['role']}: a single cycle of failure and repair has no interval"
    durability = found["durability"]
    if durability and durability["lost"]:
        yield f"availability: {durability['lost']:,} acknowledged commits of the probe were lost"


def _late_limit(found: Mapping[str, Any]) -> float:
    known = [role["mttr_s"] for role in found["roles"] if role["mttr_s"] is not None]
    return max(_LATE_SHARE * min(known, default=0.0), 0.05)
