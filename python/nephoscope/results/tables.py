"""The tables of stored runs: what the summary shows, what Markdown holds, and what is kept as CSV and Parquet.

Each row begins with its run, so tables of several runs are the same tables. What a run has not measured has no rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nephoscope import registry
from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS, SCORES, STARRED, ScoreName
from nephoscope.tables import observed
from nephoscope.tables.columns import (
    PERCENTILES,
    latencies,
    latency_columns,
    measured,
    number,
    text,
    wanted,
    whole,
)
from nephoscope.tables.model import Column, Row, Table, ends, figure, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def tables_of(runs: Sequence[RunFigures]) -> list[Table]:
    """Make all tables of runs; those without rows are left out."""
    return [table for table in every_table(runs) if table.rows]


_observed = (observed.waits, observed.transaction_costs)


def every_table(runs: Sequence[RunFigures]) -> list[Table]:
    """Make all tables, including those without rows."""
    several = len(runs) > 1
    of_evaluators = (make for module in registry.shown("tables") for make in module.TABLES)
    makers = (_scores, *of_evaluators, _limits, _course, *_observed, _costs, _points)
    run = Column("run", "text", "The run's name.", "run" if several else "")
    return [replace(table, columns=[run, *table.columns]) for table in (maker(runs) for maker in makers)]


# --- scores and throughput --------------------------------------------------------------------------------------


def _scores(runs: Sequence[RunFigures]) -> Table:
    rows = []
    for run in runs:
        names = (*SCORES, *run.scores.get("scores", {}), *run.scores.get("absent", {}))
        rows += [_score(run.name, name, name, run.scores) for name in dict.fromkeys(names)]
        if starred := run.scores.get("starred"):
            rows += [_score(run.name, name, f"{name}*", starred) for name in STARRED]
    columns = [
        text("score", "Its letter in PERFECT, or O; with a star by the second price book.", "score"),
        text("meaning", "What it says.", "meaning"),
        Column("value", "number", "The score, in `unit`.", "value", _score_shown),
        *interval_of("value", "the score"),
        text("unit", "Its unit.", "unit"),
        text("better", "`higher` or `lower`."),
        whole("repetitions", "Of how many repetitions it is the mean."),
        text("absent", "Why it is absent, where it is."),
    ]
    return Table("scores", "PERFECT: the scores and O", columns, rows, in_summary=False)


def _score_shown(row: Row) -> str:
    return spread("value", by_ends=row["score"] in BY_ENDS)(row)


def _score(run: str, name: ScoreName, shown: str, scores: Mapping[str, Any]) -> Row:
    about, score = DEFINITIONS.get(name), scores.get("scores", {}).get(name)
    row: Row = {"run": run, "score": shown}
    if about is not None:
        row |= {"unit": about.unit, "meaning": about.meaning, "better": about.better}
    if score is None:
        return row | {"absent": scores.get("absent", {}).get(name, "not measured")}
    row |= {"value": score["value"], "repetitions": score["repetitions"], "unit": score["unit"]}
    return row | ends("value", score["ci95"])


_OF_POINTS = ("ci95", "latency_ms", "failed_latency_ms")
_OF_FAILED = ("p50", "p99", "max")


def _points(runs: Sequence[RunFigures]) -> Table:
    rows = []
    for run in runs:
        for point in run.scores.get("points", []):
            row = {
                "run": run.name,
                **{key: value for key, value in point.items() if key not in _OF_POINTS},
            }
            row |= ends("tps", point["ci95"])
            row |= latencies(point["latency_ms"], ("mean", *PERCENTILES, "max"))
            failed = point.get("failed_latency_ms") or {}
            row |= {f"failed_{name}_ms": failed.get(name) for name in _OF_FAILED}
            rows.append(row)
    counts = ("committed", "aborted", "failed", "retried", "dropped", "unstarted")
    # Whoever is dropped is unstarted, too.
    shown = ("failed", "unstarted", *(["dropped"] if any(row["dropped"] for row in rows) else []))
    columns = [
        Column("mix", "text", "The mix, or the slot's pattern.", "phase", _point_name),
        number("concurrency", "Sessions at a time, of a closed load."),
        number("rate", "Arrivals per second, of an open load."),
        whole("slot", "The slot of a pattern."),
        whole("measure", "The place of its entry among `[[measure]]`, from 0."),
        whole("repetition", "Which repetition it is."),
        whole("phase", "The phase's number."),
        number("seconds", "The phase's length in s."),
        Column("tps", "number", "Committed transactions per second.", "TPS", spread("tps", ",.0f")),
        *interval_of("tps", "the TPS"),
        number("goodput", "TPS within the bound `slo`."),
        *latency_columns(("mean", *PERCENTILES, "max"), ("p50", "p99", "max")),
        *(whole(name, f"Transactions: {name}.", name if name in shown else "") for name in counts),
        *(
            number(f"failed_{name}_ms", f"The {name} of the latency of failed transactions, in ms.")
            for name in _OF_FAILED
        ),
        whole("arrivals", "Arrivals of an open load."),
        Column("steady", "flag", "Whether the TPS was steady; empty where that is not known."),
        number("drift_per_minute", "The trend, as a share of the mean."),
        number("cpu_busy", "The share of a core that the busiest load thread was running."),
        number("cpu_us", "Processor time of the client per transaction, in µs."),
        number(
            "lag_p99_us",
            "The largest p99 of the schedule lag in an interval, but for one interval in a hundred, in µs.",
        ),
    ]
    return Table("points", "Points: every measured phase", columns, rows, in_summary=False)


def _point_name(row: Row) -> str:
    level = f" c={row['concurrency']:g}" if row["concurrency"] is not None else ""
    level = f" {row['rate']:g}/s" if row["rate"] is not None else level
    return f"{row['mix'] or 'load'}{level}"


def _costs(runs: Sequence[RunFigures]) -> Table:
    rows = []
    for run in runs:
        cost = run.scores.get("cost") or {"lines": []}
        for line in cost["lines"]:
            row = {
                "run": run.name,
                "resource": line["resource"],
                "quantity": line["quantity"],
                "unit": line["unit"],
            }
            row |= {"unit_price_usd_per_hour": line["per_hour"], "cost_usd_per_min": line["per_minute"]}
            rows.append(row | {"price_book": cost["price_book"]})
    columns = [
        text("resource", "The resource.", "resource"),
        number("quantity", "How much of it all nodes have together.", "quantity"),
        text("unit", "In which unit.", "unit"),
        number("unit_price_usd_per_hour", "What a unit costs, in $ per hour.", "$/hour"),
        number("cost_usd_per_min", "What it costs, in $ per minute.", "$/min", ".6f"),
        text("price_book", "By which price book.", "price book"),
    ]
    return Table("costs", "Cost", columns, rows, in_summary=False)


def _course(runs: Sequence[RunFigures]) -> Table:
    rows = []
    for run in runs:
        for entry in run.scores.get("course", []):
            access = dict(entry["access"] or {})
            shown = "-".join(
                [access.pop("distribution", ""), *(figure(number) for number in access.values())]
            )
            asked, achieved = (
                " ".join(f"{name} {figure(share)}" for name, share in entry[of].items())
                for of in ("mix_asked", "mix")
            )
            steered = "yes" if entry["steered"] else ""
            told = {"mix_asked": asked, "mix": achieved, "access": shown, "steered": steered}
            rows.append({"run": run.name, **entry, **told})
    columns = [
        text("phase", "The phase.", "phase"),
        number(
            "start_s", "When the stretch begins, in seconds since the start of the load.", "from", unit=" s"
        ),
        number("end_s", "When it ends.", "to", unit=" s"),
        number("concurrency", "Sessions asked for in its middle, of a closed load.", "sessions asked"),
        number("rate", "Arrivals per second asked for in its middle, of an open load.", "rate asked"),
        number("tps", "Committed transactions per second.", "TPS"),
        text("mix_asked", "The share of each transaction that was asked for in its middle.", "mix asked"),
        text("mix", "The share of each transaction among those that ended.", "mix"),
        text("access", "The access distribution asked for in its middle.", "access asked"),
        text("steered", "`yes` where the load was changed by `nephoscope ctl`.", "steered"),
    ]
    return Table("course", "Course of the load: asked and achieved", columns, rows, in_summary=False)


def _limits(runs: Sequence[RunFigures]) -> Table:
    rows = [{"run": run.name, **entry} for run in runs for entry in run.scores.get("limits", [])]
    columns = [
        Column("mix", "text", "The mix.", "phase", _point_name),
        number("concurrency", "Sessions at a time, of a closed load."),
        number("rate", "Arrivals per second, of an open load."),
        text("what", "What the workload demands something of.", "what"),
        text("bound", "Whether `wanted` is the most (`at most`) or the least (`at least`)."),
        Column("wanted", "number", "What the workload demands, in `unit`.", "wanted", wanted),
        Column("measured", "number", "What was measured, in `unit`.", "measured", measured),
        text("unit", "The unit."),
        text("outcome", "`holds`, `does not hold` or `not known`.", "outcome"),
        text(
            "why",
            "Why it is so, where the figures do not say.",
            "why" if any(row["why"] for row in rows) else "",
        ),
    ]
    return Table("limits", "Limits of the workload", columns, rows)
