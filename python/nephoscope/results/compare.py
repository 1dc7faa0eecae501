"""Two runs, or two sets of runs, side by side: the difference of each figure with its interval, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.results.environment import differences
from nephoscope.results.figures import FIGURES, KINDS, Key, Kind, label_of, points_of, together, values_of
from nephoscope.results.scores import scores_of
from nephoscope.statistics import LEAST_BETWEEN, Between, Comparison, between_runs, block_means, compare
from nephoscope.tables.columns import text
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nephoscope.store import StoredRun


@dataclass(frozen=True)
class Figure:
    """A figure of two runs."""

    name: str
    unit: str
    baseline: float
    candidate: float
    comparison: Comparison
    at_least: tuple[str, ...] = ()
    """Which of the two are lower bounds: transactions that had not ended with their phase could move them."""
    higher_is_better: bool = False


@dataclass(frozen=True)
class Said:
    """A run's reservation about its own figures: a verdict that is not "ok", or a warning."""

    run: str
    """``baseline`` or ``candidate``; of a side with several runs, how many of them."""
    level: str
    """``problem``, ``warning`` or ``note``."""
    text: str


@dataclass(frozen=True)
class Compared:
    """Two runs side by side."""

    figures: Sequence[Figure]
    notes: Sequence[str]
    """Figures without a comparison, other differences, and variation that the intervals omit."""
    said: Sequence[Said]
    """The reservations of all runs, the gravest first."""
    lacking: Sequence[str] = ()
    """The points that only one side has; they are among the notes."""


def compare_runs(
    baseline: StoredRun,
    candidate: StoredRun,
    scores: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
) -> Compared:
    """Compare two runs, as `compare_sets` does; ``scores`` are theirs, where they are known already."""
    given = scores or (scores_of(baseline), scores_of(candidate))
    return _compared(_Side([(baseline, given[0])]), _Side([(candidate, given[1])]), FIGURES)


def compare_sets(
    baselines: Sequence[StoredRun], candidates: Sequence[StoredRun], figures: Sequence[str] = FIGURES
) -> Compared:
    """Compare the points that all runs have, and gather the runs' verdicts and warnings.

    A set of several runs shows what changes between runs; of one run a side that is estimated. ``figures`` are those
    that are compared: fewer have narrower intervals. Raises ``InputError`` where the runs have no point in common.
    """
    by_run = len(baselines) > 1 or len(candidates) > 1
    ours, theirs = (
        _Side([(run, scores_of(run)) for run in runs], by_run=by_run) for runs in (baselines, candidates)
    )
    return _compared(ours, theirs, figures)


def _compared(ours: _Side, theirs: _Side, figures: Sequence[str]) -> Compared:
    common = [key for key in ours.points if key in theirs.points]
    if not common:
        raise InputError(
            "the runs have no measured point in common: they differ in mixes or in concurrency "
            f"({_keys(ours.points)} against {_keys(theirs.points)})"
        )
    first, *others = [*ours.runs, *theirs.runs]
    notes = list(dict.fromkeys(note for other in others for note in differences(first, other)))
    lacking = [
        *(f"only in the baseline: {label_of(key)}" for key in ours.points if key not in theirs.points),
        *(f"only in the candidate: {label_of(key)}" for key in theirs.points if key not in ours.points),
    ]
    kinds = [kind for kind in KINDS if kind.name in figures]
    pooled = {
        kind.name: between_runs([group for key in common for group in _groups(ours, theirs, key, kind)])
        for kind in kinds
    }
    # The 5 % error rate is that of the whole table.
    comparisons = len(common) * len(kinds)
    made = (
        _figure((ours, theirs), key, kind, pooled[kind.name], comparisons) for key in common for kind in kinds
    )
    found = [figure for figure in made if figure is not None]
    notes += [*lacking, *dict.fromkeys(figure.comparison.note for figure in found if figure.comparison.note)]
    return Compared(
        found,
        [*notes, *([] if ours.by_run else [ONE_RUN_A_SIDE])],
        said_of(ours.scores, theirs.scores),
        lacking,
    )


ONE_RUN_A_SIDE = (
    "one run a side: no run sees what changes between runs. The intervals take that to be as much as changed within "
    f"them, and {LEAST_BETWEEN:.0%} at least; repeat both runs before a verdict counts"
)

_GRAVITY = ("problem", "warning", "note")


def said_of(baselines: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]]) -> list[Said]:
    """Gather the reservations of runs by their scores, the gravest first."""
    said = [*_said("baseline", baselines), *_said("candidate", candidates)]
    return sorted(said, key=lambda one: _GRAVITY.index(one.level))


def _said(name: str, runs_scores: Sequence[Mapping[str, Any]]) -> list[Said]:
    """Gather the reservations of a side's runs about their own figures; what several say is said once."""
    runs: dict[tuple[str, str], int] = {}
    for scores in runs_scores:
        verdicts = [
            (entry["level"], f"{entry['verdict']}: {entry['detail']}")
            for entry in scores.get("verdicts", [])
            if entry["level"] in _GRAVITY
        ]
        for one in dict.fromkeys(
            [*verdicts, *(("warning", warning) for warning in scores.get("warnings", []))]
        ):
            runs[one] = runs.get(one, 0) + 1
    of = len(runs_scores)
    return [
        Said(name if of == 1 else f"{name} ({count} of {of} runs)", level, text)
        for (level, text), count in runs.items()
    ]


class _Side:
    """The runs of one side of a comparison: one, whose repetitions are its series, or several, each a value."""

    def __init__(self, runs: Sequence[tuple[StoredRun, Mapping[str, Any]]], *, by_run: bool = False) -> None:
        """Group the points by mix, level and entry of ``[[measure]]``; those that a run of them lacks are left out.

        ``by_run`` says that either side has several runs: each run is one value then.
        """
        self.by_run = by_run
        self.runs = [run for run, _ in runs]
        self.scores = [scores for _, scores in runs]
        self._points = [points_of(run, scores) for run, scores in runs]
        first, *others = self._points
        self.points = [key for key in first if all(key in of for of in others)]

    def values(self, key: Key, kind: Kind) -> list[float]:
        """Return a figure of each run; of one run a side that of each repetition."""
        if self.by_run:
            return [together([run], [of[key]], kind) for run, of in self._each(key, kind)]
        return [value for _, of in self._each(key, kind) for value in values_of(of[key], kind)]

    def figure(self, key: Key, kind: Kind) -> float:
        """Return a figure of all repetitions together, as the runs' own tables have it."""
        each = self._each(key, kind)
        return together([run for run, _ in each], [of[key] for _, of in each], kind)

    def _each(self, key: Key, kind: Kind) -> list[tuple[StoredRun, dict[Key, list[Mapping[str, Any]]]]]:
        """List the runs that have a figure of a point."""
        pairs = zip(self.runs, self._points, strict=True)
        return [(run, of) for run, of in pairs if values_of(of[key], kind)]

    def is_at_least(self, key: Key, kind: Kind) -> bool:
        """Tell whether a figure is only a lower bound in any repetition."""
        points = (point for of in self._points for point in of[key])
        return any(kind.field in (point["latency_ms"] or {}).get("at_least", ()) for point in points)

    def series(self, key: Key, kind: Kind) -> list[float] | None:
        """Return the TPS of the intervals of a single repetition, in place of repetitions."""
        points = self._points[0][key]
        if self.by_run or len(points) != 1 or kind.field != "tps":
            return None
        table = self.runs[0].intervals.to_pydict()
        rates: dict[float, float] = {}
        longest: dict[float, float] = {}
        rows = zip(table["phase"], table["start_s"], table["end_s"], table["committed"], strict=True)
        for phase, start, end, committed in rows:
            if phase == points[0]["phase"]:
                rates[start] = rates.get(start, 0.0) + committed
                longest[start] = round(end - start, 9)
        usual = max(longest.values(), default=0.0)
        return [rates[start] / longest[start] for start in rates if longest[start] >= 0.98 * usual > 0]

    def group(self, key: Key, kind: Kind) -> list[float]:
        """Return the series of a figure within a single run: its repetitions, or blocks of a single one.

        Runs that are values each show what changes between them: there is nothing to estimate then.
        """
        if self.by_run:
            return []
        if (series := self.series(key, kind)) is not None:
            return block_means(series) if series else []
        return self.values(key, kind)


def _groups(ours: _Side, theirs: _Side, key: Key, kind: Kind) -> list[list[float]]:
    return [group for side in (ours, theirs) if len(group := side.group(key, kind)) > 1]


def _figure(
    sides: tuple[_Side, _Side], key: Key, kind: Kind, pooled: Between | None, comparisons: int
) -> Figure | None:
    """Compare a figure of a point; None where a run does not have it."""
    ours, theirs = sides
    before, after = ours.values(key, kind), theirs.values(key, kind)
    if not before or not after:
        return None
    # A point that is less steady than the others is compared by its own spread.
    own = between_runs(_groups(ours, theirs, key, kind))
    between = max((one for one in (pooled, own) if one), key=lambda one: one.share, default=None)
    baseline, candidate = ours.figure(key, kind), theirs.figure(key, kind)
    comparison = compare(
        before,
        after,
        higher_is_better=kind.higher_is_better,
        baseline_series=ours.series(key, kind),
        candidate_series=theirs.series(key, kind),
        figures=(baseline, candidate),
        between=between,
        comparisons=comparisons,
        each="run" if ours.by_run else "repetition",
    )
    bounds = (ours.is_at_least(key, kind), theirs.is_at_least(key, kind))
    # A lower bound may be as long as the other figure.
    if (bounds[0] and baseline <= candidate) or (bounds[1] and candidate <= baseline):
        comparison = replace(comparison, verdict="cannot tell")
    at_least = tuple(name for name, bound in zip(("baseline", "candidate"), bounds, strict=True) if bound)
    name = f"{label_of(key)} {kind.name}"
    return Figure(name, kind.unit, baseline, candidate, comparison, at_least, kind.higher_is_better)


def _keys(groups: Iterable[Key]) -> str:
    return ", ".join(label_of(key) for key in groups) or "nothing"


# --- as a table -------------------------------------------------------------------------------------------------


def comparison_table(compared: Compared) -> Table:
    """Make the table of a comparison."""
    columns = [
        replace(column, heading="candidate") if column.name == "candidate" else column for column in COLUMNS
    ]
    return Table("comparison", "", columns, rows_of(compared))


def rows_of(compared: Compared) -> list[Row]:
    """Make the rows of a comparison."""
    return [
        {
            "figure": figure.name,
            "unit": figure.unit,
            "baseline": figure.baseline,
            "candidate": figure.candidate,
            "difference": figure.comparison.difference,
            **ends("difference", figure.comparison.ci95),
            "relative": figure.comparison.relative,
            **ends("relative", figure.comparison.relative_ci95),
            "visible": figure.comparison.visible,
            "at_least": " ".join(figure.at_least),
            "verdict": figure.comparison.verdict,
        }
        for figure in compared.figures
    ]


def _amount(name: str) -> Callable[[Row], str]:
    """Show a figure in its unit, in the form that the tables of a run have it."""

    def show(row: Row) -> str:
        return ("≥ " if name in row["at_least"].split() else "") + in_unit(row[name], row["unit"])

    return show


def in_unit(value: float, unit: str) -> str:
    """Write a figure of a comparison: rates as TPS are written, times with their unit."""
    return f"{value:,.0f}" if unit == "1/s" else f"{value:.3g} {unit}"


def _relative(row: Row) -> str:
    return (
        f"{row['relative']:+.1%}"
        if row["relative"] is not None
        else f"{row['difference']:+.4g} {row['unit']}"
    )


def _relative_interval(row: Row) -> str:
    low, high = row["relative_ci95_low"], row["relative_ci95_high"]
    return "not known" if low is None else f"{low:+.1%} … {high:+.1%}"


def _visible(row: Row) -> str:
    visible, baseline = row["visible"], row["baseline"]
    return ABSENT if visible is None or baseline <= 0 else f"± {visible / baseline:.1%}"


COLUMNS = (
    Column("figure", "text", "The point, and which of its figures.", "figure"),
    text("unit", "The figure's unit."),
    Column("baseline", meaning="The figure of the first run.", heading="baseline", shown=_amount("baseline")),
    Column("candidate", meaning="The figure of this run.", heading="this run", shown=_amount("candidate")),
    Column("difference", meaning="This run's figure less that of the first."),
    Column("difference_ci95_low", meaning="The low end of the 95 % confidence interval of the difference."),
    Column("difference_ci95_high", meaning="The high end of the 95 % confidence interval of the difference."),
    Column(
        "relative",
        meaning="The difference as a share of the first run's figure.",
        heading="difference",
        shown=_relative,
    ),
    Column(
        "relative_ci95_low",
        meaning="The low end of the share's interval.",
        heading="interval",
        shown=_relative_interval,
    ),
    Column("relative_ci95_high", meaning="The high end of the share's interval."),
    Column(
        "visible",
        meaning="The smallest difference that would have been seen, in the figure's unit.",
        heading="visible from",
        shown=_visible,
    ),
    text("at_least", "Which of the two figures are lower bounds: `baseline`, `candidate`."),
    text("verdict", "`faster`, `slower`, `no difference seen`, or `cannot tell`.", "verdict"),
)
"""The columns of a comparison; those of several runs begin with the run."""
