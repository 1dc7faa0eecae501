"""The parts of the tables of stored runs: a run with its scores, and shared columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS
from nephoscope.tables.model import ABSENT, Column, Row, ends, figure, spread, with_interval

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Score
    from nephoscope.store.protocol import RunReader

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PERCENTILES = ("p50", "p95", "p99")
"""Those of latencies and lags that tables have."""


@dataclass(frozen=True)
class RunFigures:
    """A stored run with its scores, as tables are made of it."""

    name: str
    reader: RunReader
    scores: Mapping[str, Any]

    def score(self, name: str) -> Mapping[str, Any] | None:
        """Return a score; None where it is absent."""
        found: Mapping[str, Any] | None = self.scores.get("scores", {}).get(name)
        return found

    def detail(self, name: str) -> Mapping[str, Any]:
        """Return what a score was made of; empty where it is absent."""
        score = self.score(name)
        return score.get("detail", {}) if score else {}


def number(name: str, meaning: str, heading: str = "", digits: str = "", unit: str = "") -> Column:
    """Make a column of a number that is shown in a form of its own."""

    def show(row: Row) -> str:
        value = row.get(name)
        return ABSENT if value is None else (f"{value:{digits}}" if digits else figure(value)) + unit

    return Column(name, "number", meaning, heading, show)


def wanted(row: Mapping[str, Any]) -> str:
    """Write what a workload demands: ``≤ 5 s``."""
    if row.get("wanted") is None:
        return ABSENT
    sign = {"at most": "≤", "at least": "≥"}.get(row["bound"], "")
    return f"{sign} {figure(row['wanted'])} {row['unit']}".lstrip()


def measured(row: Mapping[str, Any]) -> str:
    """Write what was measured of that, with its unit."""
    value = row.get("measured")
    return ABSENT if value is None else f"{figure(value)} {row['unit']}"


def latencies(latency: Mapping[str, Any] | None, names: Sequence[str] = PERCENTILES) -> Row:
    """Return the entries of a row that hold latencies."""
    found = latency or {}
    row: Row = {f"latency_{name}_ms": found.get(name) for name in names}
    bounds = [name for name in names if name in (found.get("at_least") or ())]
    return row | {"latency_at_least": " ".join(bounds)}


def latency_columns(
    names: Sequence[str] = PERCENTILES, headings: Collection[str] = ("p50", "p99")
) -> list[Column]:
    """Make the columns of latencies, of which some are shown; one that is a lower bound stands behind ≥."""
    columns = [
        Column(
            f"latency_{name}_ms",
            "number",
            f"The {name} of the latency, in ms.",
            name if name in headings else "",
            partial(_latency_cell, name),
        )
        for name in names
    ]
    bounds = (
        "Which of these are lower bounds: transactions that had not ended with their phase could move them."
    )
    return [*columns, text("latency_at_least", bounds)]


def _latency_cell(name: str, row: Row) -> str:
    is_bound = name in (row.get("latency_at_least") or "").split()
    return milliseconds(row.get(f"latency_{name}_ms"), is_bound=is_bound)


def milliseconds(value: float | None, *, is_bound: bool = False) -> str:
    """Write a latency in ms with three digits, behind ≥ where it is a lower bound."""
    if value is None:
        return ABSENT
    shown = f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"  # noqa: PLR2004 - three digits, and no power of ten
    return f"{'≥ ' if is_bound else ''}{shown} ms"


def text(name: str, meaning: str, heading: str = "") -> Column:
    """Make a column of texts."""
    return Column(name, "text", meaning, heading)


def whole(name: str, meaning: str, heading: str = "") -> Column:
    """Make a column of whole numbers."""
    return Column(name, "whole", meaning, heading)


def seconds(value: float | None) -> str:
    """Write a length of time in ms or s."""
    if value is None:
        return ABSENT
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def seconds_with_interval(value: float, ci95: Sequence[float] | None) -> str:
    """Write a length of time in ms or s, with both ends of its interval in the same unit."""
    factor, unit = (1000, "ms") if value < 1 else (1, "s")
    ends_of = None if ci95 is None else [end * factor for end in ci95]
    return f"{with_interval(f'{value * factor:.3g}', value * factor, ends_of, by_ends=True)} {unit}"


def difference(end: float | None, start: float | None) -> float | None:
    """Subtract, where both are there."""
    return None if end is None or start is None else end - start


def with_spread(score: Mapping[str, Any], digits: str = ",.0f", *, by_ends: bool = False) -> str:
    """Write a score with its interval."""
    row = {"value": score["value"], **ends("value", score["ci95"])}
    return spread("value", digits, by_ends=by_ends)(row)


def resources_text(resources: Mapping[str, Any] | None) -> str:
    """Write the declared resources of a node, how many nodes there are, and what they share."""
    given = resources or {}
    units = (("vcores", "vCores"), ("memory_gb", "GB"), ("storage_gb", "GB stored"))
    node = ", ".join(f"{given[key]:g} {unit}" for key, unit in units if given.get(key))
    shared = [f"{given['iops']:g} IOPS"] if given.get("iops") else []
    if given.get("network_gbps"):
        shared.append(f"{given['network_gbps']:g} Gbps {given.get('network', '')}".rstrip())
    nodes = f"{given.get('nodes', 1)} × ({node})" if node else ""  # noqa: RUF001 - times
    return ", ".join(part for part in (nodes, *shared) if part)


def score_line(name: ScoreName, score: Score) -> str:
    """Write a score with its interval, its unit and its meaning."""
    about = DEFINITIONS.get(name)
    shown = with_spread(score.model_dump(), "", by_ends=name in BY_ENDS)
    return f"{name}: {shown} {score.unit}" + (f" ({about.meaning})" if about else "")


def entries_of(run: RunFigures, evaluator: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return what the entries of ``[[measure]]`` of an evaluator came to, each with its place."""
    told = run.scores.get("details", {}).get(evaluator, {})
    return [(int(place), entry) for place, entry in told.items()]


def place_of(rows: Sequence[Row]) -> Column:
    """Make the column of an entry's place: shown where a run has several."""
    places: dict[Any, set[Any]] = {}
    for row in rows:
        places.setdefault(row["run"], set()).add(row["measure"])
    several = any(len(of_run) > 1 for of_run in places.values())
    return whole(
        "measure", "The place of its entry among `[[measure]]`, from 0.", "measure" if several else ""
    )
