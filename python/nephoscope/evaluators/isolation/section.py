"""The section of isolation: a table of levels, and each witness drawn over the time of its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.parts import Method, Number, Part
from nephoscope.tables.numbers import count, elapsed, finite, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

PLACE, ANCHOR, LABEL = 72, "isolation", "Isolation"
HIDDEN = {"order", "isolation"}

_WIDTH, _LEFT, _RIGHT, _ROW, _BAR, _TOP = 720, 110, 90, 52, 20, 30
_NARROWEST = 6.0
_MOST = 8
"""Transactions of a witness that are drawn."""


class Bar(Part):
    """A transaction: from its beginning to its outcome."""

    name: str
    session: str
    x: float
    y: float
    width: float
    times: str


class Arrow(Part):
    """Why one transaction comes before the next."""

    path: str
    label: str
    label_x: float
    label_y: float


class Witness(Part):
    """An anomaly, drawn."""

    title: str
    told: str
    isolation: str
    contradicts: bool
    height: float
    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...]
    span: str
    faults: tuple[str, ...]


class LevelRow(Part):
    """A level and what was found."""

    isolation: str
    answer: str
    level: str
    strongest: str
    found: str
    tps: Number
    checked: int | None
    aborted: int | None
    unknown: int | None


class IsolationSection(Part):
    """What transactions saw."""

    method: tuple[Method, ...]
    statement: str
    rows: tuple[LevelRow, ...]
    witnesses: tuple[Witness, ...]


_LOOKS = {"contradicted": "problem", "not contradicted": "ok", "not known": "warning"}


def build(run: Run) -> IsolationSection | None:
    """Return the section; None where no history was made."""
    entries = scored.entries(run, "isolation").values()
    levels = [scored.table(one) for entry in entries for one in scored.sequence(entry.get("levels"))]
    if not levels:
        return None
    return IsolationSection(
        method=method.of(run, "isolation"),
        statement=_statement(levels),
        rows=tuple(map(_row, levels)),
        # Those that contradict their level come first.
        witnesses=tuple(
            sorted(
                (one for level in levels for one in _witnesses(run, level)),
                key=lambda one: not one.contradicts,
            )
        ),
    )


def _statement(levels: Sequence[Mapping[str, Any]]) -> str:
    checked = sum(scored.whole(level.get("committed")) or 0 for level in levels)
    against = [str(level.get("isolation")) for level in levels if level.get("answer") == "contradicted"]
    names = ", ".join(dict.fromkeys(against))
    told = f"What transactions saw contradicts {names}" if against else "No isolation level was contradicted"
    return f"{told}: {count(checked)} committed transactions were checked."


def _row(level: Mapping[str, Any]) -> LevelRow:
    answer = str(level.get("answer"))
    anomalies = [scored.table(one) for one in scored.sequence(level.get("anomalies"))]
    return LevelRow(
        isolation=str(level.get("isolation")),
        answer=answer,
        level=_LOOKS.get(answer, "note"),
        strongest=str(level.get("strongest") or "none"),
        found=", ".join(map(_counted, anomalies)) or "none",
        tps=finite(level.get("tps")),
        checked=scored.whole(level.get("committed")),
        aborted=scored.whole(level.get("aborted")),
        unknown=scored.whole(level.get("unknown")),
    )


def _counted(anomaly: Mapping[str, Any]) -> str:
    return f"{_title(anomaly)} ({count(scored.whole(anomaly.get('times')) or 0)})"


def _title(of: Mapping[str, Any]) -> str:
    order = str(of.get("order") or "none")
    return str(of.get("anomaly")) + ("" if order == "none" else f" in {order} order")


def _witnesses(run: Run, level: Mapping[str, Any]) -> list[Witness]:
    """Draw the first witness of each anomaly of a level."""
    drawn: dict[tuple[Any, Any], Witness] = {}
    against = [tuple(scored.sequence(pair)) for pair in scored.sequence(level.get("contradicting"))]
    for given in scored.sequence(level.get("witnesses")):
        witness = scored.table(given)
        key = (witness.get("anomaly"), witness.get("order"))
        if key not in drawn and (made := _drawn(run, level, witness, contradicts=key in against)):
            drawn[key] = made
    return list(drawn.values())


def _drawn(
    run: Run, level: Mapping[str, Any], witness: Mapping[str, Any], *, contradicts: bool
) -> Witness | None:
    parties = [scored.table(one) for one in scored.sequence(witness.get("transactions"))][:_MOST]
    if not parties:
        return None
    begins = [finite(party.get("begin_s")) or 0.0 for party in parties]
    ends = [finite(party.get("end_s")) or 0.0 for party in parties]
    low, high = min(begins), max(ends)
    scale = (_WIDTH - _LEFT - _RIGHT) / max(high - low, 1e-9)
    bars = []
    for place, (party, begin, end) in enumerate(zip(parties, begins, ends, strict=True)):
        width = max((end - begin) * scale, _NARROWEST)
        bars.append(
            Bar(
                name=f"T{scored.whole(party.get('number'))}",
                session=f"session {scored.whole(party.get('session'))}",
                x=round(min(_LEFT + (begin - low) * scale, _WIDTH - _RIGHT - width), 1),
                y=_TOP + place * _ROW,
                width=round(width, 1),
                times=f"{elapsed(begin)}, for {number((end - begin) * 1000)} ms",
            )
        )
    return Witness(
        title=_title(witness),
        told=str(witness.get("told")),
        isolation=str(level.get("isolation")),
        contradicts=contradicts,
        height=_TOP + len(bars) * _ROW + 6,
        bars=tuple(bars),
        arrows=tuple(_arrows(bars, [scored.table(one) for one in scored.sequence(witness.get("steps"))])),
        span=f"{elapsed(low)} of the run, {number((high - low) * 1000)} ms",
        faults=tuple(_faults(run, low, high)),
    )


def _arrows(bars: Sequence[Bar], steps: Sequence[Mapping[str, Any]]) -> list[Arrow]:
    """Draw each step as an arrow from its transaction to the next, each at a place of its own along the bars."""
    arrows: list[Arrow] = []
    for place, step in enumerate(steps[: len(bars)] if len(bars) > 1 else ()):
        first, second = bars[place], bars[(place + 1) % len(bars)]
        key = scored.whole(step.get("key"))
        along = (place + 1) / (len(bars) + 1)
        start, end = (bar.x + along * bar.width for bar in (first, second))
        down = second.y > first.y
        y1, y2 = (first.y + _BAR, second.y) if down else (first.y, second.y + _BAR)
        arrows.append(
            Arrow(
                path=f"M{start:.1f},{y1} L{end:.1f},{y2}",
                label=f"{step.get('kind')}{'' if key is None else f' key {key}'}",
                label_x=round((start + end) / 2 + 6, 1),
                label_y=round((y1 + y2) / 2 + 4, 1),
            )
        )
    return arrows


_NEAR_S = 30.0


def _faults(run: Run, low: float, high: float) -> list[str]:
    """Say which faults were near a witness, in time."""
    told = []
    for event in run.events_of("fault", "action"):
        at = finite(event.get("time_s"))
        if at is not None and low - _NEAR_S < at < high + _NEAR_S:
            told.append(f"{event.get('action')} at {elapsed(at)}")
    return told
