"""Responses: what an experiment reads of each of its runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.scoring.definitions import DEFINITIONS
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nephoscope import _engine
    from nephoscope.store import StoredRun


@dataclass(frozen=True)
class Response:
    """A figure of a run: its unit, and which way is better."""

    unit: str
    higher_is_better: bool
    meaning: str
    quantile: float | None = None


FIGURES: Mapping[str, Response] = {
    "tps": Response("1/s", higher_is_better=True, meaning="Committed transactions per second."),
    "goodput": Response(
        "1/s", higher_is_better=True, meaning="Those within the latency bound, where the study sets one."
    ),
    "mean_ms": Response("ms", higher_is_better=False, meaning="The mean latency."),
    **{
        f"p{name}_ms": Response(
            "ms", higher_is_better=False, meaning=f"The latency's {name}th percentile.", quantile=share
        )
        for name, share in (("50", 0.5), ("95", 0.95), ("99", 0.99))
    },
    "failed": Response("share", higher_is_better=False, meaning="The share of failed transactions."),
    "cpu_us": Response("µs", higher_is_better=False, meaning="The client's processor time per transaction."),
    "stale": Response(
        "share", higher_is_better=False, meaning="The share of stale reads, as measured by consistency."
    ),
    "visible_ms": Response(
        "ms",
        higher_is_better=False,
        meaning="The mean time until a write is visible, as measured by consistency.",
    ),
    "cost": Response(
        "$/min", higher_is_better=False, meaning="The cost of the resources, as of the first price book."
    ),
    **{
        name: Response(
            score.unit, higher_is_better=score.higher_is_better, meaning=f"The score: {score.meaning}."
        )
        for name, score in DEFINITIONS.items()
    },
}
"""The responses that a run has, by name. ``NAME@MIX`` is that of one mix, ``NAME:TRANSACTION`` of one transaction."""

OF_POINTS = ("tps", "goodput", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "failed", "cpu_us")
LATENCIES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")


def _parts(name: str) -> tuple[str, str | None, str | None]:
    """Take a response's name apart: the figure, a transaction, a mix."""
    rest, at, mix = name.partition("@")
    figure, colon, transaction = rest.partition(":")
    return figure, transaction if colon else None, mix if at else None


def check_response(name: str) -> None:
    """Check the name of a response. Raises ``InputError``."""
    figure, transaction, mix = _parts(name)
    wrong = (
        figure not in FIGURES
        or (mix is not None and (not mix or figure not in OF_POINTS))
        or (transaction is not None and (not transaction or figure not in LATENCIES))
    )
    if wrong:
        raise InputError(
            f"experiment: {name!r} is no response; responses are {', '.join(FIGURES)}; of one mix as in tps@RW "
            f"are {', '.join(OF_POINTS)}; of one transaction as in mean_ms:read are {', '.join(LATENCIES)}"
        )


def response(name: str) -> Response:
    """Return the definition of a response."""
    return FIGURES[_parts(name)[0]]


def transactions_of(names: Iterable[str]) -> list[str]:
    """List the transactions that some responses are of, each once."""
    return list(dict.fromkeys(of for name in names if (of := _parts(name)[1]) is not None))


def may_be_negative(name: str) -> bool:
    """Tell whether a response can be below 0: an interval of another ends there."""
    return name in DEFINITIONS and (DEFINITIONS[name].is_signed or not DEFINITIONS[name].in_o)


def points_of(run: StoredRun, scores: Mapping[str, Any], mix: str = "") -> list[Mapping[str, Any]]:
    """List the measured points of a run that its responses are made of, steps of a search left out.

    Of several levels of load those of the level with the highest TPS, for each mix.
    """
    labels = {phase.number: phase.labels for phase in run.phases}
    groups: dict[str, dict[Any, list[Mapping[str, Any]]]] = {}
    for point in scores["points"]:
        name = point["mix"] or str(labels.get(point["phase"], {}).get("load") or "load")
        if not labels.get(point["phase"], {}).get("search") and mix in {"", name}:
            level = (point["measure"], point["concurrency"], point["rate"])
            groups.setdefault(name, {}).setdefault(level, []).append(point)
    return [point for levels in groups.values() for point in max(levels.values(), key=_tps)]


def _tps(points: Sequence[Mapping[str, Any]]) -> float:
    return math.fsum(point["tps"] for point in points) / len(points)


def latencies(
    runs: Iterable[tuple[StoredRun, Sequence[Mapping[str, Any]]]], transaction: str | None = None
) -> list[_engine.Histogram]:
    """Add up the latencies of points, for each run; what had not ended counts with its wait.

    All of them, or those of a transaction.
    """
    found = []
    for run, points in runs:
        phases = frozenset(point["phase"] for point in points)
        total = run.merged(Selection(phases=phases, transaction=transaction))
        total.add(run.merged(Selection(phases=phases, transaction=transaction, kind="censored")))
        found.append(total)
    return found


def value_of(run: StoredRun, scores: Mapping[str, Any], name: str) -> float | None:
    """Return a response of a run; None where the run does not have it."""
    figure, transaction, mix = _parts(name)
    if figure in DEFINITIONS:
        score = scores["scores"].get(figure)
        return None if score is None else float(score["value"])
    if figure == "cost":
        return float(scores["cost"]["per_minute"]) if scores.get("cost") else None
    if figure in {"stale", "visible_ms"}:
        return _of_consistency(scores, figure)
    points = points_of(run, scores, mix or "")
    quantile = FIGURES[figure].quantile
    if points and (quantile is not None or transaction is not None):
        (total,) = latencies([(run, points)], transaction)
        if not total.count:
            return None
        return (total.mean if quantile is None else total.quantile(quantile)) / 1e6
    return _mean([_weighted(point, figure) for point in points])


def _of_consistency(scores: Mapping[str, Any], figure: str) -> float | None:
    """Return a figure of all reads, or of all writes, of a run's consistency; None where none was measured."""
    entries = scores.get("details", {}).get("consistency", {}).values()
    situations = [situation for entry in entries for situation in entry["situations"]]
    if figure == "stale":
        shares = [(of["stale"]["share"], of["stale"]["trials"]) for of in situations]
        return _mean([share for share in shares if share[1]])
    visible = [of for situation in situations for of in situation["visible"] if of["node"] is None]
    return _mean([(of["mean_ms"], of["count"]) for of in visible])


def _weighted(point: Mapping[str, Any], figure: str) -> tuple[float, float] | None:
    """Return a figure of a point and its weight in the mean of several; None where the point lacks it."""
    if figure == "mean_ms":
        return (point["latency_ms"]["mean"], point["committed"]) if point["latency_ms"] else None
    if figure == "failed":
        ended = point["committed"] + point["aborted"] + point["failed"]
        return (point["failed"] / ended, ended) if ended else None
    return None if point[figure] is None else (point[figure], 1)


def _mean(weighted: Sequence[tuple[float, float] | None]) -> float | None:
    known = [entry for entry in weighted if entry is not None]
    total = math.fsum(weight for _, weight in known)
    return math.fsum(value * weight for value, weight in known) / total if total else None
