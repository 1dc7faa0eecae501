"""What a bisection has found, read from its runs alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.errors import MeasurementError
from nephoscope.experiments.bisection.folder import FILES
from nephoscope.experiments.responses import response, value_of
from nephoscope.measuring.series import whole_runs
from nephoscope.results.scores import scores_of
from nephoscope.statistics import Searched, search
from nephoscope.tables.columns import number, text, whole
from nephoscope.tables.model import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nephoscope.experiments.bisection.folder import Bisection
    from nephoscope.store import StoredRun

ERROR = 0.05
"""The chance of a wrong answer."""


@dataclass(frozen=True)
class Progress:
    """A bisection so far."""

    plan: Bisection
    observed: Sequence[tuple[int, float]]
    """The places of the versions that were measured, and the figure, in their order."""
    searched: Searched

    @property
    def following(self) -> int | None:
        """The place of the version to measure next; None where there is an answer."""
        place = self.searched.following
        return None if place is None else self.plan.measurable[place]

    @property
    def changed(self) -> range | None:
        """The places of the versions of which one has changed the figure: several where some could not be measured."""
        if self.searched.answer != "changed":
            return None
        chances, places = self.searched.chances, self.plan.measurable
        best = max(range(len(chances)), key=lambda at: chances[at])
        return range(places[best - 1] + 1, places[best] + 1)

    @property
    def relative(self) -> tuple[float, tuple[float, float] | None] | None:
        """The change as a share, and its interval."""
        if self.searched.difference is None:
            return None
        ends = self.searched.interval
        interval = None if ends is None else (math.expm1(ends[0]), math.expm1(ends[1]))
        return math.expm1(self.searched.difference), interval


class Values:
    """The figure of each run; a run is read once."""

    def __init__(self, plan: Bisection) -> None:
        """Take the bisection."""
        self._name = plan.response
        self._places = {plan.study_name(place): place for place in range(len(plan.versions))}
        self._known: dict[Path, float] = {}

    def of(self, runs: Path) -> list[tuple[int, float]]:
        """Read the whole runs of a folder in their order. Raises ``MeasurementError`` for one without the figure."""
        found = []
        for run in whole_runs(runs):
            if (place := self._places.get(str(run.manifest["study"]))) is not None:
                if run.folder not in self._known:
                    self._known[run.folder] = self._value(run)
                found.append((place, self._known[run.folder]))
        return found

    def _value(self, run: StoredRun) -> float:
        value = value_of(run, scores_of(run), self._name)
        if value is None or value <= 0:
            what = "has no" if value is None else f"has {value:g} as"
            raise MeasurementError(
                f"{run.folder} {what} {self._name}: a change is looked for of figures above 0"
            )
        return value


def progress(plan: Bisection, folder: Path, values: Values) -> Progress:
    """Say how far a bisection is. Its figures are compared by their logarithms: changes and spread are shares."""
    observed = values.of(folder / FILES.runs)
    places = {version: place for place, version in enumerate(plan.measurable)}
    usable = [(places[version], math.log(value)) for version, value in observed if version in places]
    return Progress(plan, observed, search(len(places), usable, math.log1p(plan.least), ERROR))


def answer(found: Progress) -> str:
    """Say what was found in a sentence."""
    plan, share = found.plan, f"{100 * found.plan.least:g} %"
    if (changed := found.changed) is not None:
        first, last = (plan.versions[place].shown for place in (changed[0], changed[-1]))
        several = f"one of {len(changed)} ({first} … {last}), of which the others could not be measured,"
        which = last if len(changed) == 1 else several
        return f"{which} changed {plan.response} by {_share(found)}"
    if found.searched.answer == "no change":
        return f"{plan.response} did not change by {share} or more from the good to the bad version: {_share(found)}"
    return f"it is open after {len(found.observed)} runs which version changed {plan.response}, if any did"


def _share(found: Progress) -> str:
    if (relative := found.relative) is None:
        return "so much as is not known"
    value, interval = relative
    ends = "" if interval is None else f" ({interval[0]:+.1%} … {interval[1]:+.1%})"
    return f"{value:+.1%}{ends}"


def to_json(found: Progress) -> dict[str, Any]:
    """Write what was found for machines."""
    relative = found.relative
    return {
        "answer": {"open": "cannot tell"}.get(found.searched.answer, found.searched.answer),
        "changed": [found.plan.versions[place].name for place in found.changed or ()],
        "response": found.plan.response,
        "relative": None if relative is None else relative[0],
        "interval": None if relative is None else relative[1],
        "runs": len(found.observed),
        "versions": table_of(found).rows,
    }


def table_of(found: Progress) -> Table:
    """Make the table of the versions that were measured or skipped."""
    plan, unit = found.plan, response(found.plan.response).unit
    chances = dict(zip(plan.measurable, found.searched.chances, strict=True))
    rows: list[Row] = []
    for place, version in enumerate(plan.versions):
        own = [value for at, value in found.observed if at == place]
        if own or place in plan.skipped:
            rows.append(
                {
                    "place": place,
                    "version": version.shown,
                    "runs": len(own),
                    "mean": math.fsum(own) / len(own) if own else None,
                    "unit": unit,
                    "chance": chances.get(place),
                    "skipped": place in plan.skipped,
                }
            )
    columns = [
        whole("place", "Its place in the order, from 0.", "place"),
        text("version", "The version.", "version"),
        whole("runs", "How often it was measured.", "runs"),
        number("mean", "The mean of the figure.", f"{plan.response}, {unit}"),
        text("unit", "The unit."),
        Column(
            "chance", "number", "The chance that it is the first after the change.", "first after it", _chance
        ),
        Column("skipped", "flag", "Whether the command failed at it.", "skipped"),
    ]
    return Table("bisection", "Versions that were measured", columns, rows)


def _chance(row: Row) -> str:
    return "–" if row["chance"] is None else f"{row['chance']:.1%}"  # noqa: RUF001 - a dash for what is absent
