"""The tables of what was observed beside the load: what the server waited for, and what a transaction cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.tables.columns import number, text, whole
from nephoscope.tables.model import ABSENT, Column, Row, Table, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.tables.columns import RunFigures


def waits(runs: Sequence[RunFigures]) -> Table:
    """Make the table of wait events: a row for each measured phase, server and event, the largest share first."""
    rows: list[Row] = [{"run": run.name, **entry} for run in runs for entry in run.scores.get("waits", [])]
    several = len({row["source"] for row in rows}) > 1
    columns = [
        *_phase(),
        text("source", "The server: `server:rw` ….", "server" if several else ""),
        text(
            "wait",
            "What its sessions at work were in, in the server's own words; `CPU` is no wait.",
            "wait event",
        ),
        number("sessions", "How many sessions were in it, on average.", "sessions"),
        Column("share", "number", "Its share of the time of all sessions at work, 0 to 1.", "share", _share),
    ]
    return Table("waits", "What the server waited for", columns, rows, in_summary=False)


def transaction_costs(runs: Sequence[RunFigures]) -> Table:
    """Make the table of costs per committed transaction: a row for each measured phase."""
    rows: list[Row] = [
        {"run": run.name, **entry} for run in runs for entry in run.scores.get("transaction_costs", [])
    ]
    each = (
        ("server_cpu_us", "server CPU", " µs", "Processor time of the servers' processes, in µs."),
        ("client_cpu_us", "client CPU", " µs", "Processor time of the client, in µs."),
        ("context_switches", "context switches", "", "Context switches of the servers' processes."),
        ("disk_read_bytes", "disk read", " B", "Bytes that the servers' processes had read from disks."),
        ("read_bytes", "server read", " B", "Bytes read by the servers' own account, the log left out."),
        (
            "written_bytes",
            "server written",
            " B",
            "Bytes written by the servers' own account, the log left out.",
        ),
        ("wal_bytes", "WAL", " B", "Bytes of the log of changes."),
    )
    known = {name for name, *_ in each if any(row.get(name) is not None for row in rows)}
    columns = [
        *_phase(),
        *(
            number(
                name, f"{meaning} Empty where it is not known.", heading if name in known else "", unit=unit
            )
            for name, heading, unit, meaning in each
        ),
    ]
    return Table("transaction_costs", "Cost per committed transaction", columns, rows, in_summary=False)


def _phase() -> list[Column]:
    return [
        Column("name", "text", "The phase's name.", "phase", _phase_name),
        whole("phase", "The phase's number."),
        text("mix", "The mix, or the slot's pattern."),
        number("concurrency", "Sessions at a time, of a closed load."),
        number("rate", "Arrivals per second, of an open load."),
        whole("slot", "The slot of a pattern."),
        whole("measure", "The place of its entry among `[[measure]]`, from 0."),
        whole("repetition", "Which repetition it is."),
    ]


def _phase_name(row: Row) -> str:
    """Name a phase by its mix, its level and its repetition."""
    level = f" c={row['concurrency']:g}" if row["concurrency"] is not None else ""
    level = f" {row['rate']:g}/s" if row["rate"] is not None else level
    repetition = f", repetition {row['repetition']}" if row["repetition"] is not None else ""
    return f"{row['mix'] or row['name']}{level}{repetition}"


def _share(row: Row) -> str:
    return ABSENT if row["share"] is None else f"{figure(100 * row['share'])} %"
