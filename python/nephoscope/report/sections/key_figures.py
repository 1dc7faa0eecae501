"""The few figures that a reader in a hurry takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.report.kit import scored
from nephoscope.report.view import KeyFigure
from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS
from nephoscope.tables.numbers import count, dollars, finite, number, percent, spread

if TYPE_CHECKING:
    from nephoscope.report.kit.parts import Verdict
    from nephoscope.report.kit.run import Run
    from nephoscope.report.view import MixRow


def build(run: Run, rows: tuple[MixRow, ...], verdicts: tuple[Verdict, ...]) -> tuple[KeyFigure, ...]:
    """Return scores (if any were measured), throughput, cost, failures, and how far to trust them."""
    scores = _scores(run)
    throughput = _throughput(rows)[: 1 if scores else 2]
    return (*scores, *throughput, *_cost(run), *_failures(run), *_trust(verdicts))


def _scores(run: Run) -> list[KeyFigure]:
    """Return the first two: O, then those that it combines by their equations, so that F stands before R."""
    figures = []
    for key in sorted(DEFINITIONS, key=lambda key: (DEFINITIONS[key].in_o, DEFINITIONS[key].equation)):
        score = scored.score(run, key)
        value = finite(score.get("value"))
        if value is None:
            continue
        figures.append(
            KeyFigure(
                label=f"{key}-Score",
                value=number(value),
                unit=str(score.get("unit") or ""),
                note=spread(value, scored.ci95(score.get("ci95")), by_ends=key in BY_ENDS),
                link="#scores",
            )
        )
    return figures[:2]


def _throughput(rows: tuple[MixRow, ...]) -> list[KeyFigure]:
    """Return the mix with the highest throughput, and its tail."""
    best = max(rows, key=lambda row: row.tps.value or 0.0, default=None)
    if best is None or not best.tps.value:
        return []
    where = " · ".join(part for part in (best.mix, best.load) if part)
    return [
        KeyFigure(
            label="Highest throughput",
            value=number(best.tps.value),
            unit="TPS",
            note=" ".join(part for part in (spread(best.tps.value, best.tps.ci95), where) if part),
            link="#headline",
        ),
        KeyFigure(
            label="Latency p99",
            value=("≥ " if "p99" in best.latency.at_least else "") + number(best.latency.p99, 3),
            unit="ms",
            note=where,
            link="#latency",
        ),
    ]


def _cost(run: Run) -> list[KeyFigure]:
    cost = scored.table(run.scores.get("cost"))
    per_minute = finite(cost.get("per_minute"))
    if per_minute is None:
        return []
    book = f"by {cost['price_book']}" if cost.get("price_book") else ""
    return [KeyFigure(label="Cost", value=dollars(per_minute), unit="per minute", note=book, link="#cost")]


def _failures(run: Run) -> list[KeyFigure]:
    committed, aborted, failed = (run.intervals.total(key) for key in ("committed", "aborted", "failed"))
    ended = committed + aborted + failed
    if not ended:
        return []
    return [
        KeyFigure(
            label="Failed",
            value=count(failed) if failed else "none",
            note=f"of {count(ended)} transactions" + (f", {_share(failed / ended)}" if failed else ""),
            level="problem" if failed > committed else None,
            link="#errors",
        )
    ]


def _share(share: float) -> str:
    return f"{number(share * 1e6, 3)} in a million" if share < 1e-4 else percent(share)  # noqa: PLR2004 - 0.01 %


def _trust(verdicts: tuple[Verdict, ...]) -> list[KeyFigure]:
    """Return the gravest verdicts; they stand in the order of their gravity."""
    if not verdicts:
        return []
    gravest = verdicts[0].level
    total = sum(verdict.level == gravest for verdict in verdicts)
    words = {"problem": "problem", "warning": "warning"}
    if gravest not in words:
        return [KeyFigure(label="Verdicts", value="no warnings", level="ok", link="#verdicts")]
    value = f"{count(total)} {words[gravest]}{'' if total == 1 else 's'}"
    return [KeyFigure(label="Verdicts", value=value, note=verdicts[0].text, level=gravest, link="#verdicts")]
