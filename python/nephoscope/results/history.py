"""Runs of one study over time, figure by figure, and where they have changed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.results.environment import differences
from nephoscope.results.figures import KINDS, Key, Kind, label_of, points_of, together, values_of
from nephoscope.results.scores import scores_of
from nephoscope.scoring.definitions import DEFINITIONS
from nephoscope.statistics import MOST_VALUES, Comparison, change_points, compare
from nephoscope.tables.columns import number, text, whole
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.store import StoredRun

FOLLOWED = ("TPS", "p95")
"""The figures of points that are followed where none are named: each more makes a change of any harder to see."""
SIGNIFICANCE = 0.05
"""The chance that any change is found in a history without one, of all its figures together."""


@dataclass(frozen=True)
class Change:
    """A change of a figure."""

    at: int
    """The place of the first run after it, in the figure's series."""
    p_value: float
    comparison: Comparison
    """Of the runs until the next change with those since the one before."""


@dataclass(frozen=True)
class FigureHistory:
    """A figure over the runs that have it."""

    name: str
    unit: str
    higher_is_better: bool
    runs: Sequence[int]
    """The runs, by their places in the history."""
    values: Sequence[float]
    changes: Sequence[Change]


@dataclass(frozen=True)
class History:
    """The history of a study."""

    study: str
    runs: Sequence[StoredRun]
    """The earliest first."""
    courses: Sequence[FigureHistory]
    notes: Sequence[str]


def read_history(
    runs: Sequence[StoredRun], study: str | None = None, figures: Sequence[str] = FOLLOWED
) -> History:
    """Read the history of a study: of figures of points, and of scores by their letters.

    Raises ``InputError`` where the runs are of several studies and none is named, or where none has a figure.
    """
    name = _study_of(runs, study)
    chosen = sorted((run for run in runs if run.manifest["study"] == name), key=_began)
    notes = []
    if len(chosen) > MOST_VALUES:
        notes.append(f"only the last {MOST_VALUES} of {len(chosen)} runs are looked at")
        chosen = chosen[-MOST_VALUES:]
    scores: dict[int, Mapping[str, Any]] = {}
    for place, run in enumerate(chosen):
        try:
            scores[place] = scores_of(run)
        except InputError as error:
            notes.append(f"{run.name} is left out: {error}")
    series = _series(chosen, scores, figures)
    if not series:
        raise InputError(f"no run of {name} has any of the figures {', '.join(figures)}")
    # The error rate is that of the whole history.
    significance = SIGNIFICANCE / len(series)
    courses = [_course(of, significance, len(series)) for of in series]
    return History(name, chosen, courses, [*notes, *_notes(chosen)])


def _study_of(runs: Sequence[StoredRun], study: str | None) -> str:
    names = list(dict.fromkeys(str(run.manifest["study"]) for run in runs))
    if study is not None and study not in names:
        raise InputError(f"--study {study}: there is no run of it; studies are {', '.join(names)}")
    if study is None and len(names) > 1:
        raise InputError(f"there are runs of several studies, {', '.join(names)}: --study names one")
    return study or names[0]


def _began(run: StoredRun) -> tuple[str, str]:
    """Return when a run began, to sort by."""
    try:
        moment = datetime.fromisoformat(run.manifest.get("clock", {}).get("origin", "")).astimezone(UTC)
    except ValueError:
        return "", run.name
    return moment.isoformat(timespec="seconds"), run.name


_Series = tuple[str, str, bool, list[tuple[int, float]]]
"""A figure's name, its unit, whether more is better, and its values by run."""


def _series(
    runs: Sequence[StoredRun], scores: Mapping[int, Mapping[str, Any]], figures: Sequence[str]
) -> list[_Series]:
    """Gather each figure of the runs: its name, its unit, which way is better, and its values by run."""
    found: dict[tuple[Key, Kind] | str, list[tuple[int, float]]] = {}
    kinds = [kind for kind in KINDS if kind.name in figures]
    for place, of_run in scores.items():
        run = runs[place]
        for key, points in points_of(run, of_run).items():
            for kind in kinds:
                if values_of(points, kind):
                    found.setdefault((key, kind), []).append((place, together([run], [points], kind)))
        for name in figures:
            if name in of_run["scores"]:
                found.setdefault(name, []).append((place, float(of_run["scores"][name]["value"])))
    made = []
    for of, values in found.items():
        if isinstance(of, str):
            about = DEFINITIONS[of]
            made.append((of, about.unit, about.higher_is_better, values))
        else:
            made.append((f"{label_of(of[0])} {of[1].name}", of[1].unit, of[1].higher_is_better, values))
    return made


def _course(of: _Series, significance: float, figures: int) -> FigureHistory:
    name, unit, higher, found = of
    values = [value for _, value in found]
    points = change_points(values, significance)
    borders = [0, *(point.place for point in points), len(values)]
    changes = []
    for at, point in enumerate(points, start=1):
        before, after = values[borders[at - 1] : borders[at]], values[borders[at] : borders[at + 1]]
        comparison = compare(before, after, higher_is_better=higher, comparisons=figures, each="run")
        changes.append(Change(point.place, point.p_value, comparison))
    return FigureHistory(name, unit, higher, [place for place, _ in found], values, changes)


def _notes(runs: Sequence[StoredRun]) -> list[str]:
    """Say where runs differ from those before them in something besides the system."""
    found = []
    for before, run in itertools.pairwise(runs):
        told = [note.removeprefix("the runs differ in ") for note in differences(before, run)]
        if before.study != run.study:
            told.append("the study")
        if told:
            found.append(f"{run.name} differs from the run before it in {'; '.join(told)}")
    return found


# --- as tables --------------------------------------------------------------------------------------------------


def tables_of(history: History) -> list[Table]:
    """Make the tables of a history: its figures, its changes, and each value for files."""
    return [_figures(history), _changes(history), _values(history)]


def _figures(history: History) -> Table:
    rows: list[Row] = []
    for course in history.courses:
        last = course.changes[-1].at if course.changes else 0
        since = course.values[last:]
        rows.append(
            {
                "figure": course.name,
                "unit": course.unit,
                "runs": len(course.values),
                "first": course.values[0],
                "last": course.values[-1],
                "level": sum(since) / len(since),
                "changes": len(course.changes),
                "since": history.runs[course.runs[last]].name if course.changes else None,
            }
        )
    columns = [
        text("figure", "The point and its figure, or a score.", "figure"),
        text("unit", "The unit.", "unit"),
        whole("runs", "How many runs have it.", "runs"),
        number("first", "Its value in the first of them.", "first"),
        number("last", "Its value in the last of them.", "last"),
        number("level", "Its mean since the last change.", "level now"),
        whole("changes", "How many changes were found.", "changes"),
        text("since", "The run since which it has its present level.", "since"),
    ]
    return Table("figures", f"History of {history.study}, {len(history.runs)} runs", columns, rows)


def _changes(history: History) -> Table:
    rows: list[Row] = []
    for course in history.courses:
        for change in course.changes:
            run, before = (history.runs[course.runs[at]] for at in (change.at, change.at - 1))
            comparison = change.comparison
            rows.append(
                {
                    "figure": course.name,
                    "date": _began(run)[0],
                    "run": run.name,
                    "after": before.name,
                    "change": comparison.difference,
                    **ends("change", comparison.ci95),
                    "unit": course.unit,
                    "relative": comparison.relative,
                    **ends("relative", comparison.relative_ci95),
                    "p_value": change.p_value,
                    "verdict": comparison.verdict,
                }
            )
    columns = [
        text("figure", "The figure that changed.", "figure"),
        text("date", "When the first run after the change began, in UTC.", "date"),
        text("run", "The first run after the change.", "first run after it"),
        text("after", "The last run before it.", "last run before it"),
        number(
            "change", "The mean of the runs after it, up to the next change, less that of the runs before it."
        ),
        Column("change_ci95_low", meaning="The low end of its 95 % confidence interval."),
        Column("change_ci95_high", meaning="The high end of its 95 % confidence interval."),
        text("unit", "The unit."),
        Column("relative", "number", "The change as a share of the mean before it.", "change", _relative),
        Column(
            "relative_ci95_low",
            meaning="The low end of the share's interval.",
            heading="interval",
            shown=_interval,
        ),
        Column("relative_ci95_high", meaning="The high end of the share's interval."),
        number("p_value", "The chance of as clear a change in runs of random order.", "p", ".2g"),
        text("verdict", "`faster`, `slower`, or that the means do not tell.", "verdict"),
    ]
    return Table("changes", "Changes, with their 95 % intervals", columns, rows)


def _relative(row: Row) -> str:
    return ABSENT if row["relative"] is None else f"{row['relative']:+.1%}"


def _interval(row: Row) -> str:
    low, high = row["relative_ci95_low"], row["relative_ci95_high"]
    return ABSENT if low is None else f"{low:+.1%} … {high:+.1%}"


def _values(history: History) -> Table:
    rows: list[Row] = []
    for course in history.courses:
        segment = 0
        starts = {change.at for change in course.changes}
        for at, (place, value) in enumerate(zip(course.runs, course.values, strict=True)):
            segment += at in starts
            run = history.runs[place]
            began: Mapping[str, str] = {"run": run.name, "date": _began(run)[0]}
            rows.append(
                {**began, "figure": course.name, "unit": course.unit, "value": value, "segment": segment}
            )
    columns = [
        text("run", "The run."),
        text("date", "When it began, in UTC."),
        text("figure", "The figure."),
        text("unit", "Its unit."),
        number("value", "Its value."),
        whole("segment", "How many changes lie before it."),
    ]
    return Table("values", "Values", columns, rows)
