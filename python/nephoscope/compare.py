"""Two runs side by side: the difference of each figure with its interval, and what may be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.scores import scores_of
from nephoscope.statistics import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nephoscope.store import StoredRun


@dataclass(frozen=True)
class Figure:
    """A figure of two runs."""

    name: str
    unit: str
    baseline: float
    candidate: float
    comparison: Comparison


_FIGURES = (
    # name, unit, where it stands in a point, whether more is better
    ("TPS", "1/s", "tps", True),
    ("p50", "ms", "p50", False),
    ("p95", "ms", "p95", False),
    ("p99", "ms", "p99", False),
    ("client CPU", "µs", "cpu_us", False),
)


def compare_runs(baseline: StoredRun, candidate: StoredRun) -> tuple[list[Figure], list[str]]:
    """Compare what both runs have measured; gives the figures, and notes on what could not be compared.

    Raises ``InputError`` where the runs have no point in common.
    """
    ours, theirs = (_points(run) for run in (baseline, candidate))
    common = [key for key in ours if key in theirs]
    if not common:
        raise InputError(
            "the runs have no measured point in common: they differ in mixes or in concurrency "
            f"({_keys(ours)} against {_keys(theirs)})"
        )
    notes = differences(baseline, candidate)
    notes += [f"only in the baseline: {_label(key)}" for key in ours if key not in theirs]
    notes += [f"only in the candidate: {_label(key)}" for key in theirs if key not in ours]
    pairs = [(key, figure) for key in common for figure in _FIGURES]
    figures = []
    for key, (name, unit, field, more) in pairs:
        before, after = _values(ours[key], field), _values(theirs[key], field)
        if not before or not after:
            continue
        figures.append(
            Figure(
                name=f"{_label(key)} {name}",
                unit=unit,
                baseline=sum(before) / len(before),
                candidate=sum(after) / len(after),
                comparison=compare(
                    before,
                    after,
                    higher_is_better=more,
                    baseline_series=_series(baseline, ours[key]) if field == "tps" else None,
                    candidate_series=_series(candidate, theirs[key]) if field == "tps" else None,
                    # All figures are read side by side: together they err once in twenty tables.
                    comparisons=len(pairs),
                ),
            )
        )
    return figures, notes


Key = tuple[str, float | None, float | None]


def _points(run: StoredRun) -> dict[Key, list[Mapping[str, Any]]]:
    """Gather the points of a run by mix and level; steps of a search do not count."""
    searched = {phase.number for phase in run.phases if phase.labels.get("search")}
    groups: dict[Key, list[Mapping[str, Any]]] = {}
    for point in scores_of(run)["points"]:
        if point["phase"] not in searched:
            groups.setdefault((point["mix"] or "", point["concurrency"], point["rate"]), []).append(point)
    return groups


def _label(key: Key) -> str:
    mix, concurrency, rate = key
    level = f" c={concurrency:g}" if concurrency is not None else ""
    return (mix or "load") + (f" {rate:g}/s" if rate is not None else level)


def _keys(groups: Iterable[Key]) -> str:
    return ", ".join(_label(key) for key in groups) or "nothing"


def _values(points: Sequence[Mapping[str, Any]], field: str) -> list[float]:
    found = [point[field] if field in point else (point["latency_ms"] or {}).get(field) for point in points]
    return [float(value) for value in found if value is not None]


def _series(run: StoredRun, points: Sequence[Mapping[str, Any]]) -> list[float] | None:
    """Return the TPS of the intervals of a single repetition, in place of repetitions."""
    if len(points) != 1:
        return None
    table = run.intervals.to_pydict()
    rates: dict[float, float] = {}
    longest: dict[float, float] = {}
    rows = zip(table["phase"], table["start_s"], table["end_s"], table["committed"], strict=True)
    for phase, start, end, committed in rows:
        if phase == points[0]["phase"]:
            rates[start] = rates.get(start, 0.0) + committed
            longest[start] = round(end - start, 9)
    usual = max(longest.values(), default=0.0)
    return [rates[start] / longest[start] for start in rates if longest[start] >= 0.98 * usual > 0]


_SAME = (
    ("workload", "name"),
    ("workload", "scale"),
    ("workload", "files"),
    ("load", "threads"),
    ("load", "statement_mode"),
    ("load", "pipeline"),
    ("host", "name"),
    ("host", "cpu"),
)


def differences(baseline: StoredRun, candidate: StoredRun) -> list[str]:
    """Say what else than the system differs: a difference of figures may come from there."""
    notes = []
    for table, key in _SAME:
        ours, theirs = (run.manifest.get(table, {}).get(key) for run in (baseline, candidate))
        if ours != theirs:
            shown = "" if key == "files" else f": {ours} and {theirs}"
            notes.append(f"the runs differ in {table}.{key}{shown}")
    for name, run in (("baseline", baseline), ("candidate", candidate)):
        if run.manifest["status"] != "measured":
            notes.append(f"the {name} is not whole: its status is {run.manifest['status']}")
    return notes
