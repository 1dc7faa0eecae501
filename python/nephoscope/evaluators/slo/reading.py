"""The highest rate within a latency limit, read from a stored run: its steps, and the interval of the rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nephoscope.evaluators.bracket import MOST_STEPS
from nephoscope.evaluators.client_metrics import ClientMetrics
from nephoscope.evaluators.points import latency_of, percentile_of
from nephoscope.evaluators.slo.shares import LimitCounter, WithinLimit, certain_interval
from nephoscope.statistics import mean_ci, no_less_than_0
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nephoscope import _engine
    from nephoscope.evaluators.points import MeasuredPoints, Point
    from nephoscope.evaluators.slo.settings import SloSettings
    from nephoscope.evaluators.slo.shares import Outcome
    from nephoscope.evaluators.stored import Stored
    from nephoscope.store import Phase

_KINDS: tuple[Literal["latency"], Literal["failed"], Literal["censored"]] = ("latency", "failed", "censored")


@dataclass(frozen=True)
class _Step:
    """A measured phase of the search, or of a confirmation."""

    point: Point
    confirms: bool
    counts: WithinLimit
    outcome: Outcome

    @property
    def rate(self) -> float:
        return self.point.rate or 0.0


def read_mixes(stored: Stored, read: MeasuredPoints, settings: SloSettings) -> dict[str, dict[str, Any]]:
    """Read each mix: its rate, the interval of that, why the search ended, and its steps."""
    phases = {phase.number: phase for phase in stored.run.phases}
    counted = _counted(stored, [phases[point.phase] for point in read.points], settings.limit)
    mixes: dict[str, list[_Step]] = {}
    for point in read.points:
        counts = counted[point.phase]
        confirms = phases[point.phase].labels.get("slo") == "confirmation"
        step = _Step(point, confirms, counts, counts.outcome(settings.percentile))
        mixes.setdefault(point.mix or "", []).append(step)
    short = {one.mix for one in read.shortfalls}
    return {mix: _mix(stored, steps, settings, is_short=mix in short) for mix, steps in mixes.items()}


def _mix(stored: Stored, steps: Sequence[_Step], settings: SloSettings, *, is_short: bool) -> dict[str, Any]:
    groups: dict[float, list[_Step]] = {}
    for step in sorted(steps, key=lambda step: step.rate):
        groups.setdefault(step.rate, []).append(step)
    rate = max((at for at, group in groups.items() if _is_confirmed(group, settings)), default=None)
    confirming = [step for step in groups.get(rate or 0.0, []) if step.confirms]
    rates = [_level(stored, at, group, settings.percentile) for at, group in groups.items()]
    held, not_held = certain_interval({of["rate"]: of["certainty"] for of in rates})
    ended, why = _ending(rate, steps, settings, is_short=is_short)
    tps = mean_ci([step.point.tps for step in confirming]) if confirming else None
    latency = latency_of(stored, frozenset(step.point.phase for step in confirming))
    return {
        "rate": rate,
        "certainly_held": held,
        "certainly_not_held": not_held,
        "ended": ended,
        "why": why,
        "tps": tps.mean if tps else None,
        "tps_ci95": no_less_than_0(tps.ci95) if tps else None,
        "latency_ms": latency.model_dump() if latency else None,
        "phases": [step.point.phase for step in confirming],
        "rates": rates,
        "steps": [_told(stored, step, settings.percentile) for step in steps],
    }


def _is_confirmed(group: Sequence[_Step], settings: SloSettings) -> bool:
    """Tell whether the confirmations of a rate held; one that is not known was made again."""
    outcomes = [step.outcome for step in group if step.confirms]
    return outcomes.count("held") >= settings.repetitions and "not held" not in outcomes


def _level(stored: Stored, rate: float, group: Sequence[_Step], percentile: float) -> dict[str, Any]:
    """Describe a rate: all its phases together."""
    counts = WithinLimit.of_all([step.counts for step in group])
    return {
        "rate": rate,
        **_shares(counts),
        "certainty": counts.certainty(percentile),
        **_percentile(stored, [step.point.phase for step in group], percentile),
    }


def _told(stored: Stored, step: _Step, percentile: float) -> dict[str, Any]:
    return {
        "rate": step.rate,
        "confirms": step.confirms,
        "phase": step.point.phase,
        "tps": step.point.tps,
        "failed": step.point.failed,
        "unstarted": step.point.unstarted,
        **_shares(step.counts),
        "outcome": step.outcome,
        **_percentile(stored, [step.point.phase], percentile),
    }


def _shares(counts: WithinLimit) -> dict[str, Any]:
    return {
        "arrivals": counts.count,
        "share": counts.share,
        "share_ci95": counts.ci95 if counts.count else None,
        "excused_share": counts.excused_share,
    }


def _percentile(stored: Stored, phases: Iterable[int], percentile: float) -> dict[str, Any]:
    """Read the percentile in ms; transactions that had not ended are in it with their wait."""
    of = frozenset(phases)
    ended = stored.run.merged(Selection(phases=of))
    late = stored.run.merged(Selection(phases=of, kind="censored"))
    found, is_bound = percentile_of(ended, late, percentile)
    return {"percentile_ms": None if found is None else found / 1e6, "at_least": is_bound}


def _ending(
    rate: float | None, steps: Sequence[_Step], settings: SloSettings, *, is_short: bool
) -> tuple[str, str]:
    """Say in a word and in words why the search ended."""
    within = f"{100 * settings.percentile:g} % within {1000 * settings.limit:g} ms"
    if rate == settings.most:
        return "most", f"the highest rate that may be tried held: most = {settings.most:g}"
    if rate is not None:
        return (
            "narrowed",
            f"rates above it by more than {settings.precision:.3g} of it did not hold, or not again",
        )
    if is_short:
        return "broken off", "sessions were not connected"
    if any(step.rate == settings.least and step.outcome != "held" for step in steps):
        return (
            "least",
            f"the lowest rate that may be tried did not hold ({within}): least = {settings.least:g}",
        )
    if len(steps) >= MOST_STEPS:
        return "broken off", f"no rate held {settings.repetitions} times in a row in {len(steps)} steps"
    return "broken off", "the run ended before a rate was confirmed"


# --- counting -----------------------------------------------------------------------------------------------


def _counted(stored: Stored, phases: Sequence[Phase], limit_s: float) -> dict[int, WithinLimit]:
    """Count the arrivals of each phase interval by interval, in one pass over the run's histograms."""
    client = ClientMetrics(stored.run)
    ordered = sorted(phases, key=lambda phase: phase.start_s)
    windows = {phase.number: client.intervals(phase.start_s, phase.end_s) for phase in ordered}
    every = [window for phase in ordered for window in windows[phase.number]]
    merged = [stored.run.merged_by_window(every, Selection(kind=kind)) for kind in _KINDS]
    rows = iter(zip(*merged, strict=True))
    found = {}
    for phase in ordered:
        counter = LimitCounter(limit_s, float(phase.labels.get("rate") or 0.0))
        lags = dict(zip(*client.during("lag_max_us", phase.start_s, phase.end_s), strict=True))
        for start_s, end_s in windows[phase.number]:
            latency, *others = next(rows)
            lag_us = lags.get(end_s)
            counter.add(
                start_s - phase.start_s,
                latency,
                sum(_count(histogram) for histogram in others),
                None if lag_us is None else lag_us / 1e6,
            )
        arrivals = client.during("arrivals", phase.start_s, phase.end_s)[1].sum()
        found[phase.number] = counter.counted(int(arrivals), _aborted(stored, phase))
    return found


def _count(histogram: _engine.Histogram | None) -> int:
    return histogram.count if histogram is not None else 0


def _aborted(stored: Stored, phase: Phase) -> int:
    table = stored.run.intervals
    of_phase = table.column("phase").to_numpy() == phase.number
    return int(table.column("aborted").to_numpy()[of_phase].sum())
