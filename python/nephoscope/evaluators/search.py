"""The search for saturation: τ, the smallest concurrency that reaches the best throughput (METRICS, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from nephoscope.errors import MeasurementError
from nephoscope.evaluators.points import latency_of
from nephoscope.settings.base import Settings
from nephoscope.settings.loads import MOST_CONCURRENCY
from nephoscope.settings.units import Duration, describe_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.connected import Shortfall
    from nephoscope.evaluators.demand import Room
    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.loads import Load


_DOUBLINGS_IN_VAIN = 2


class SearchSettings(Settings):
    """How saturation is searched for: τ is the smallest concurrency that reaches the best throughput but for ``gain``.

    Concurrency is doubled from ``start`` until two doublings in a row gain less than ``gain`` while p99 grows, or
    ``most`` is reached; then the step before is halved as long as that says more.
    """

    start: Annotated[int, Field(ge=1)] = 1
    """The lowest concurrency that is tried."""
    most: Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] = 256
    """The highest concurrency that is tried."""
    gain: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The share by which throughput has to grow for a higher concurrency to count."""
    duration: Duration = 5.0
    """Of each step of the search; what is found is then measured with the study's own duration."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.start > self.most:
            raise ValueError(f"a search goes upwards, and start ({self.start}) is above most ({self.most})")
        if self.duration <= 0:
            raise ValueError("a step of the search needs a duration above 0")
        return self


@dataclass(frozen=True)
class _Step:
    """The result of a step of a search."""

    concurrency: int
    tps: float
    p99_ms: float


def search(
    load: LoadRun, settings: SearchSettings, ask: Callable[[int], int], room: Room | None = None
) -> int:
    """Find τ by driving a load; ``ask`` requests the phases of a step and returns the measured one's number.

    Its labels are those of a point and ``search``, by which the reader finds the steps. The search stays within the
    server's ``room``. Raises ``MeasurementError`` if sessions have no connection at the start.
    """
    most = settings.most if room is None else min(settings.most, room.sessions)
    steps = _Steps(load, ask)
    found, last = _climb(steps, settings, most)
    if room is not None and found == last == most < settings.most:
        message = f"the search for saturation ended at {describe_count(most, 'session')}: {room.words}"
        load.note("warning", message=message)
    low = max((concurrency for concurrency in steps.of if concurrency < found), default=None)
    high = found
    while low is not None and high - low > max(1, high // 8):
        middle = (low + high) // 2
        if (between := steps.measure(middle)) is None:
            break
        if between.tps * (1 + settings.gain) >= _best(steps.of.values()).tps:
            high = middle
        else:
            low = middle
    return _saturation(list(steps.of.values()), settings)[0]


def ask_step(
    load: LoadRun, name: str, level: Load | Mapping[str, Load], labels: Mapping[str, Any], seconds: float
) -> int:
    """Request a step's phases, with a warm-up of half the length; return the measured one's number."""
    load.phase(f"{name} warm-up", "warm_up", seconds / 2, level, labels)
    return load.phase(name, "measure", seconds, level, labels)


@dataclass
class _Steps:
    """The steps of a search that were measured, by their concurrency."""

    load: LoadRun
    ask: Callable[[int], int]
    of: dict[int, _Step] = field(default_factory=dict)

    def measure(self, concurrency: int) -> _Step | None:
        """Measure a step once; None if sessions had no connection."""
        if concurrency not in self.of:
            number = self.ask(concurrency)
            self.load.wait()
            record = self.load.phases.get(number)
            if record is not None and record.is_short:
                return None
            tps, p99 = (record.tps, record.p99_ms) if record else (0.0, 0.0)
            self.of[concurrency] = _Step(concurrency, tps, p99)
        return self.of[concurrency]


def _climb(steps: _Steps, settings: SearchSettings, most: int) -> tuple[int, int]:
    """Double the concurrency while that gains; return the highest that gained and the highest tried."""
    start = min(settings.start, most)
    if (found := steps.measure(start)) is None:
        reason = f"of {describe_count(start, 'session')}, with which it begins, not all were connected"
        raise MeasurementError(f"the search for saturation: {reason}")
    last, in_vain = found, 0
    # One doubling without gain may be noise; two in a row end the search.
    while last.concurrency < most and in_vain < _DOUBLINGS_IN_VAIN:
        if (doubled := steps.measure(min(last.concurrency * 2, most))) is None:
            break
        last = doubled
        if _is_saturated(found, last, settings.gain):
            in_vain += 1
        else:
            found, in_vain = last, 0
    return found.concurrency, last.concurrency


def searched(stored: Stored) -> set[int]:
    """Return the numbers of the phases that were steps of a search."""
    return {phase.number for phase in stored.run.phases if phase.labels.get("search")}


def describe_saturation(
    stored: Stored, points: Sequence[Point], settings: SearchSettings, shortfalls: Iterable[Shortfall] = ()
) -> dict[str, Any]:
    """Read saturation off points: a search's steps, or a sweep. ``shortfalls`` are phases that are no points."""
    steps = _steps(stored, points)
    tau, why, known = _saturation(steps, settings)
    beyond = [one.wanted for one in shortfalls if one.wanted > tau]
    if beyond and not known:
        why = f"of {min(beyond)} sessions not all were connected"
    return {
        "concurrency": tau,
        "saturated": known,
        "tps": next(step.tps for step in steps if step.concurrency == tau),
        "why": why,
    }


def _is_saturated(before: _Step, doubled: _Step, gain: float) -> bool:
    return doubled.tps < before.tps * (1 + gain) and doubled.p99_ms > before.p99_ms


def _best(steps: Iterable[_Step]) -> _Step:
    return max(steps, key=lambda step: step.tps)


def _saturation(steps: Sequence[_Step], search: SearchSettings) -> tuple[int, str, bool]:
    """Return τ, why, and whether the system is known to be saturated there.

    τ is the smallest concurrency whose throughput is the best but for the gain that does not count.
    """
    ordered = sorted(steps, key=lambda step: step.concurrency)
    best = _best(ordered)
    tau = next(step for step in ordered if step.tps * (1 + search.gain) >= best.tps)
    beyond = next((step for step in ordered if step.concurrency > tau.concurrency), None)
    if beyond is None:
        why = f"no concurrency above {tau.concurrency} was tried"
    else:
        change = beyond.tps / tau.tps - 1 if tau.tps else 0.0
        slower = beyond.p99_ms / tau.p99_ms if tau.p99_ms else 0.0
        why = (
            f"TPS changed by {change:+.1%} from {tau.concurrency} to {beyond.concurrency} "
            f"while p99 was {slower:.2g} times as long"
        )
    return tau.concurrency, why, beyond is not None


def _steps(stored: Stored, points: Sequence[Point]) -> list[_Step]:
    """Join the points of each concurrency: the p99 is that of all their transactions."""
    levels: dict[int, list[Point]] = {}
    for point in points:
        levels.setdefault(int(point.concurrency or 0), []).append(point)
    steps = []
    for level, group in levels.items():
        latency = latency_of(stored, frozenset(point.phase for point in group))
        tps = sum(point.tps for point in group) / len(group)
        steps.append(_Step(level, tps, latency.p99 if latency else 0.0))
    return steps
