"""Charts of a load that moves: what was asked of it beside what it achieved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import scored
from nephoscope.report.kit.charts import TimeChart, TimeLine, transaction_look
from nephoscope.tables.numbers import finite, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.report.kit.run import Run

    Stretches = Sequence[Mapping[str, Any]]

_PERCENT = 100.0


def charts(run: Run) -> list[TimeChart | None]:
    """Return the charts of level, mix and access; those without anything that moves are None."""
    stretches = [scored.table(entry) for entry in scored.sequence(run.scores.get("course"))]
    if not stretches:
        return []
    return [_level(stretches), _mix(run, stretches), _access(stretches)]


def _middles(stretches: Stretches) -> tuple[float, ...]:
    return tuple(
        ((finite(one.get("start_s")) or 0.0) + (finite(one.get("end_s")) or 0.0)) / 2 for one in stretches
    )


def _level(stretches: Stretches) -> TimeChart | None:
    """Draw the level that was asked for; of an open load beside its TPS."""
    rates, sessions, tps = (
        tuple(finite(one.get(name)) for one in stretches) for name in ("rate", "concurrency", "tps")
    )
    is_open = any(rate is not None for rate in rates)
    asked = rates if is_open else sessions
    if len(set(asked)) == 1 and not is_open:
        return None
    lines = [TimeLine(name="asked", color="muted", dash="dashed", y=asked)]
    if is_open:
        lines.append(TimeLine(name="committed", color="c0", y=tps))
    furthest = max((abs((t or 0) - a) / a for t, a in zip(tps, rates, strict=True) if a), default=0.0)
    levels = [value for value in asked if value is not None]
    span = f"from {number(min(levels))} to {number(max(levels))}" if levels else "none"
    return TimeChart(
        id="time-asked",
        title="Rate asked and TPS achieved" if is_open else "Sessions asked",
        unit="per second" if is_open else "transactions at a time",
        message=f"Asked for: {span}"
        + (f"; the TPS of a stretch is at most {number(furthest * 100)} % away." if is_open else "."),
        x=_middles(stretches),
        lines=tuple(lines),
        size="medium",
    )


def _mix(run: Run, stretches: Stretches) -> TimeChart | None:
    """Draw the share of each transaction, asked for and achieved."""
    asked = [scored.table(one.get("mix_asked")) for one in stretches]
    if len({tuple(mix.items()) for mix in asked}) == 1:
        return None
    achieved = [scored.table(one.get("mix")) for one in stretches]
    lines = []
    for place, name in enumerate(run.transactions):
        color, _ = transaction_look(place)
        planned, came = (
            tuple(_PERCENT * (finite(mix.get(name)) or 0.0) if mix else None for mix in mixes)
            for mixes in (asked, achieved)
        )
        lines.append(TimeLine(name=f"{name}, asked", color=color, dash="dashed", y=planned))
        lines.append(TimeLine(name=name, color=color, y=came))
    furthest = max(
        (
            abs((finite(there.get(name)) or 0.0) - (finite(here.get(name)) or 0.0))
            for here, there in zip(asked, achieved, strict=True)
            if there
            for name in run.transactions
        ),
        default=0.0,
    )
    return TimeChart(
        id="time-mix",
        title="Mix asked and achieved",
        unit="% of the transactions",
        message=f"The share of a transaction in a stretch is at most {number(_PERCENT * furthest)} points away.",
        x=_middles(stretches),
        lines=tuple(lines),
        size="medium",
    )


def _access(stretches: Stretches) -> TimeChart | None:
    """Draw the numbers of the access distribution, where they move."""
    tables = [scored.table(one.get("access")) for one in stretches]
    if len({tuple(table.items()) for table in tables}) == 1:
        return None
    names = dict.fromkeys(name for table in tables for name in table if name != "distribution")
    lines = tuple(
        TimeLine(name=name, color=f"c{place}", y=tuple(finite(table.get(name)) for table in tables))
        for place, name in enumerate(names)
    )
    kinds = ", then ".join(dict.fromkeys(str(table.get("distribution")) for table in tables if table))
    return TimeChart(
        id="time-access",
        title="Access distribution asked",
        unit="its numbers: theta is the skew",
        message=f"The distribution is {kinds}.",
        x=_middles(stretches),
        lines=lines,
        size="small",
    )
