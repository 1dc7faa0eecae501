"""The tables of nodes that failed in stored runs; ``run_tables`` gathers them."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from nephoscope import _engine
from nephoscope.scoring.failures import over_roles, recovery
from nephoscope.scoring.formulas import Absent
from nephoscope.tables.columns import (
    difference,
    entries_of,
    number,
    seconds,
    seconds_with_interval,
    text,
    whole,
)
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, interval_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.tables.columns import RunFigures


def _names(row: Row) -> str:
    return f"{row['fault']} of {row['role']} {row['repetition']}"


def _failures_of(run: RunFigures) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every failure with the fault that it was."""
    return [
        (entry["fault"], failure) for _, entry in entries_of(run, "failover") for failure in entry["failures"]
    ]


def failures(runs: Sequence[RunFigures]) -> Table:
    """Failures with their results, as in the paper's Table VIII."""
    classes = _engine.error_classes()
    rows = []
    for run in runs:
        for fault, told in _failures_of(run):
            row = {"run": run.name, "fault": fault, **told}
            row["outage_s"] = difference(told["service_back_s"], told["injected_s"])
            row["recovery_s"] = difference(told["tps_back_s"], told["service_back_s"])
            row["later"] = len(told.get("later") or ())
            rows.append(row | {f"errors_{name}": told["errors"].get(name, 0) for name in classes})
    columns = [
        Column("fault", "text", "What happened to the node.", "failure", _names),
        text("role", "The role of the node that failed."),
        whole("repetition", "Which repetition it is."),
        number("injected_s", "When the fault was injected, in s since the start of the load."),
        Column(
            "outage_s",
            "number",
            "From the fault to the service back, in s; none where it did not come back.",
            "outage",
            _outage,
        ),
        number("resolution_s", "How far apart the probes on both sides of the return are, in s."),
        Column(
            "recovery_s",
            "number",
            "From the service back to the load served as before, in s; none where that was not seen.",
            "recovery",
            _recovery,
        ),
        number("recovery_resolution_s", "A recovery that is shorter, in s, is known only to be shorter."),
        Column("interrupted", "flag", "Whether any probe was not served in time."),
        whole("failed_probes", "Probes of the outage that failed or were missing.", "probes failed"),
        whole("late_probes", "Probes of the outage that were answered, and late.", "late"),
        whole("later", "How often the service was interrupted again, after the outage."),
        text("load", "`closed`, a number of sessions, or `open`, a rate."),
        number("tps_before", "The mean TPS before the fault."),
        number("least_tps", "The TPS that a closed load had to come back to."),
        number("most_p95_ms", "The p95 latency that an open load had to come back to, in ms."),
        whole("acknowledged", "Commits of the probe that were acknowledged."),
        Column("lost", "whole", "Of these, missing afterwards.", "lost commits", _lost),
        whole("indeterminate", "Commits of the probe that were not acknowledged, and are there."),
        *(
            whole(
                f"errors_{name}", f"Errors of the load of the class `{name}`, refused connections among them."
            )
            for name in classes
        ),
    ]
    return Table("failures", _title(runs), columns, rows)


def _title(runs: Sequence[RunFigures]) -> str:
    if len(runs) != 1:
        return "F- and R-Score: failures"
    parts = []
    for name, what in (
        ("F", "until the service is back"),
        ("R", "from there until the load is served as before"),
    ):
        if score := runs[0].score(name):
            middle = score["detail"].get("median")
            told = "" if middle is None else f" (median {seconds(middle)})"
            parts.append(f"{name} {seconds_with_interval(score['value'], score['ci95'])} {what}{told}")
        else:
            parts.append(f"no {name}: {runs[0].scores.get('absent', {}).get(name)}")
    return "; ".join(parts)


def _outage(row: Row) -> str:
    if not row["interrupted"]:
        return "no interruption"
    return "did not end" if row["outage_s"] is None else seconds(row["outage_s"])


def _recovery(row: Row) -> str:
    """Write a recovery; one below its resolution as an upper bound."""
    if row["recovery_s"] is None:
        return "not seen"
    least = row.get("recovery_resolution_s") or 0.0
    return f"< {seconds(least)}" if row["recovery_s"] < least else seconds(row["recovery_s"])


def _lost(row: Row) -> str:
    return ABSENT if row["lost"] is None else f"{row['lost']:,} of {row['acknowledged']:,}"


# --- by failure and role ------------------------------------------------------------------------------------------


def failover(runs: Sequence[RunFigures]) -> Table:
    """F and R by fault and role, as in the paper's Table VIII: their means and medians."""
    rows = []
    for run in runs:
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for fault, told in _failures_of(run):
            groups.setdefault((fault, told["role"]), []).append(told)
        for (fault, role), found in groups.items():
            lost = [told["lost"] for told in found if told["lost"] is not None]
            row = {"run": run.name, "fault": fault, "role": role, "times": len(found)}
            row |= _summed_up("F", found) | _summed_up("R", found)
            rows.append(row | {"lost": sum(lost) if lost else None})
    columns = [
        Column(
            "fault",
            "text",
            "What happened to the nodes.",
            "failure",
            lambda row: f"{row['fault']} of {row['role']}",
        ),
        text("role", "The role of the nodes that failed."),
        whole("times", "How often it happened.", "times"),
        *_columns("f", "F", "From the fault to the service back"),
        *_columns("r", "R", "From the service back to the load served as before"),
        whole("lost", "Acknowledged commits of the probe that were missing afterwards.", "lost commits"),
    ]
    return Table("failover", "F- and R-Score: fail-over and recovery, by failure", columns, rows, paper=8)


def _columns(name: str, heading: str, meaning: str) -> list[Column]:
    return [
        Column(f"{name}_s", "number", f"{meaning}: the mean, in s.", heading, lambda row: _mean(row, name)),
        *interval_of(f"{name}_s", "the mean"),
        Column(
            f"{name}_median_s",
            "number",
            f"{meaning}: the median, in s.",
            f"median {heading}",
            lambda row: seconds(row[f"{name}_median_s"]),
        ),
        whole(f"{name}_unseen", "How often it was not seen: then there is no mean."),
    ]


def _summed_up(name: Literal["F", "R"], found: Sequence[Mapping[str, Any]]) -> Row:
    """Sum up one score of failures of a kind; one that did not end has no mean."""
    start, end = {"F": ("injected_s", "service_back_s"), "R": ("service_back_s", "tps_back_s")}[name]
    waits = [difference(told[end], told[start]) for told in found]
    key = name.lower()
    row: Row = {f"{key}_s": None, f"{key}_median_s": None, **ends(f"{key}_s", None)}
    row[f"{key}_unseen"] = waits.count(None)
    known = [
        recovery(wait, told.get("recovery_resolution_s") or 0.0) if name == "R" else (wait, 0.0)
        for wait, told in zip(waits, found, strict=True)
        if wait is not None
    ]
    if len(known) < len(waits):
        return row
    values = [value for value, _ in known]
    score = over_roles(name, {"": values}, half_widths={"": [half for _, half in known]})
    if isinstance(score, Absent):
        return row
    return row | {f"{key}_s": score.value, f"{key}_median_s": median(values), **ends(f"{key}_s", score.ci95)}


def _mean(row: Row, name: str) -> str:
    if row[f"{name}_s"] is None:
        return f"not seen in {row[f'{name}_unseen']}"
    low, high = row[f"{name}_s_ci95_low"], row[f"{name}_s_ci95_high"]
    return seconds_with_interval(row[f"{name}_s"], None if low is None or high is None else (low, high))


# --- later interruptions ------------------------------------------------------------------------------------------


def interruptions(runs: Sequence[RunFigures]) -> Table:
    """List later interruptions after an outage, which are no part of F."""
    rows = []
    for run in runs:
        for fault, told in _failures_of(run):
            for later in told.get("later") or ():
                row = {
                    "run": run.name,
                    "fault": fault,
                    "role": told["role"],
                    "repetition": told["repetition"],
                }
                row["after_s"] = difference(later["began_s"], told["injected_s"])
                row["lasted_s"] = difference(later["back_s"], later["began_s"])
                rows.append(row | {key: later[key] for key in ("node", "failed_probes", "late_probes")})
    columns = [
        Column("fault", "text", "What had happened to the node.", "failure", _names),
        text("role", "The role of the node that had failed."),
        whole("repetition", "Which repetition it is."),
        text("node", "The endpoint that was interrupted.", "endpoint"),
        Column(
            "after_s",
            "number",
            "From the fault to the interruption's first probe, in s.",
            "after the fault",
            lambda row: seconds(row["after_s"]),
        ),
        Column(
            "lasted_s",
            "number",
            "How long it lasted, in s; none where it did not end.",
            "lasted",
            lambda row: "did not end" if row["lasted_s"] is None else seconds(row["lasted_s"]),
        ),
        whole("failed_probes", "Probes that failed or were missing.", "probes failed"),
        whole("late_probes", "Probes that were answered, and late.", "late"),
    ]
    return Table(
        "interruptions",
        "Later interruptions, after the service had served again: no part of F",
        columns,
        rows,
    )


PLACE = 30
TABLES = (failures, failover, interruptions)
