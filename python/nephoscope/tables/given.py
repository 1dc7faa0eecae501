"""What ``nephoscope score`` prints: tables as CloudyBench's V, VII and IX, for a terminal or as Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS, SCORES, STARRED, ScoreName
from nephoscope.scoring.formulas import Absent, Score
from nephoscope.tables.columns import seconds
from nephoscope.tables.model import ABSENT, Table, markdown, of_texts, terminal, with_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from nephoscope.scoring.definitions import Parts
    from nephoscope.scoring.given_scores import SystemScores

_PAPER = 9
"""CloudyBench's table of all scores."""


def tables(systems: Sequence[SystemScores]) -> list[Table]:
    """Make the tables: of each score's parts where there are any, such as P by mix, and of all scores."""
    found = [
        _detail(systems, name, about.parts) for name, about in DEFINITIONS.items() if about.parts is not None
    ]
    return [table for table in found if table is not None] + [overall(systems)]


def notes(systems: Sequence[SystemScores]) -> list[str]:
    """Say why scores are absent; systems that lack the same for the same reason share a line."""
    lacking: dict[tuple[str, str], list[str]] = {}
    lines: list[str] = []
    for system in systems:
        for reason, names in _reasons(system).items():
            lacking.setdefault((", ".join(names), reason), []).append(system.name)
        told = notes_of_o(getattr(system.scores["O"], "detail", {}))
        lines += [
            f"{system.name}: {note}" for note in told if "no interval" not in note or _any_interval(system)
        ]
    lines += dict.fromkeys(f"by the price book {system.notice}" for system in systems if system.notice)
    return [f"{', '.join(who)}: no {names}: {reason}" for (names, reason), who in lacking.items()] + lines


def _any_interval(system: SystemScores) -> bool:
    """Tell whether a score has an interval: figures given without any need no word on O's."""
    return any(isinstance(score, Score) and score.ci95 for score in system.scores.values())


def notes_of_o(detail: Mapping[str, Any]) -> list[str]:
    """Return notes on O: the assumption of its interval, or why it has none, and floored times."""
    floored = detail.get("floored") or {}
    why = [f"O has no interval: {detail['no_interval']}"] if detail.get("no_interval") else []
    if (told := detail.get("interval")) is not None:
        why.append(f"O's interval takes for granted: {told['assumes']}")
        if told["within_one"]:
            names = ", ".join(told["within_one"])
            why[-1] += f"; {names} within a single repetition, which says nothing of how another would differ"
    return why + [
        f"O takes {name} as {seconds(at)}, and its interval all that is shorter: no shorter times are told apart"
        for name, at in floored.items()
    ]


def _reasons(system: SystemScores) -> dict[str, list[str]]:
    """Group what a system lacks by the reason."""
    reasons: dict[str, list[str]] = {}
    for star, scores in (("", system.scores), ("*", system.starred)):
        for name in SCORES:
            if isinstance(score := scores.get(name), Absent):
                reasons.setdefault(score.reason, []).append(name + star)
    return reasons


def score_tables(systems: Sequence[SystemScores]) -> RenderableType:
    """Show the scores on a terminal."""
    parts: list[RenderableType] = []
    for table in tables(systems):
        parts += [terminal(table), Text()]
    parts += [Text(f"· {note}", style="cyan") for note in notes(systems)]
    return Group(*parts)


def score_markdown(systems: Sequence[SystemScores]) -> str:
    """Write the scores as Markdown, for an issue or a wiki."""
    return markdown(tables(systems), notes(systems))


def overall(systems: Sequence[SystemScores]) -> Table:
    """Make the table of all scores, as the paper's Table IX."""
    has_stars = any(system.starred for system in systems)
    columns = ["system"]
    for name in SCORES:
        unit = DEFINITIONS[name].table_unit
        columns.append(f"{name} ({unit})" if unit else name)
        if has_stars and name in STARRED:
            columns.append(f"{name}*")
    rows = []
    for system in systems:
        row = [system.name]
        for name in SCORES:
            row.append(_cell(name, system.scores.get(name)))
            if has_stars and name in STARRED:
                row.append(_cell(name, system.starred.get(name)))
        rows.append(row)
    return replace(of_texts("overall", "PERFECT: the scores and O", columns, rows), paper=_PAPER)


def _detail(systems: Sequence[SystemScores], name: ScoreName, of: Parts) -> Table | None:
    """Make the table of a score's parts, for the systems whose figures the file has."""
    with_parts = [
        (system.name, score)
        for system in systems
        if isinstance(score := system.scores[name], Score) and of.key in score.detail
    ]
    if not with_parts:
        return None
    parts = list(dict.fromkeys(part for _, score in with_parts for part in score.detail[of.key]))
    rows = []
    for system_name, score in with_parts:
        values = [score.detail[of.key].get(part) for part in parts]
        cells = [_part(name, value) for value in values]
        rows.append([system_name, f"{score.detail['cost_per_minute']:.4f}", *cells, _cell(name, score)])
    title = f"{name}-Score: {DEFINITIONS[name].unit}, by {of.by}"
    columns = ["system", "$/min", *(part or "all" for part in parts), "mean"]
    return replace(of_texts(name, title, columns, rows), paper=of.paper)


def _part(name: ScoreName, value: Mapping[str, Any] | float | None) -> str:
    """Write a part of a score: with its interval where it was measured, and a number where it was given."""
    if value is None:
        return ABSENT
    if not isinstance(value, dict):
        return _number(name, float(value))  # type: ignore[arg-type]
    return with_interval(_number(name, value["p"]), value["p"], value.get("p_ci95"))


def _cell(name: ScoreName, score: Score | Absent | None) -> str:
    if not isinstance(score, Score):
        return ABSENT
    factor = 1000 if DEFINITIONS[name].table_unit == "ms" else 1
    value = score.value * factor
    ci95 = None if score.ci95 is None else [end * factor for end in score.ci95]
    return with_interval(_number(name, value), value, ci95, by_ends=name in BY_ENDS)


def _number(name: ScoreName, value: float) -> str:
    return f"{value:{DEFINITIONS[name].digits}}"
