"""What commands print that asks for no run: lists, a workload, trials, checks. Scores are not imported for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.syntax import Syntax
from rich.text import Text

from nephoscope import _engine, registry
from nephoscope.settings.units import describe_value
from nephoscope.study.services import service, service_names
from nephoscope.tables.terminal import TerminalTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from nephoscope.engine.data import CheckResult
    from nephoscope.measuring.trying import Trial, Tried
    from nephoscope.study.workload import Workload

MARKS = {
    "ok": ("✓", "green"),
    "note": ("·", "cyan"),
    "warning": ("!", "yellow"),
    "problem": ("✗", "bold red"),
}


def check_table(workload: str, results: Sequence[CheckResult]) -> RenderableType:
    """Show which invariants hold."""
    if not results:
        return Text(f"{workload}: there is nothing to check")
    lines: list[RenderableType] = []
    for result in results:
        mark, style = {"holds": MARKS["ok"], "broken": MARKS["problem"]}.get(result.verdict, MARKS["note"])
        detail = f" ({result.verdict}: {result.detail})" if result.detail else ""
        lines.append(Text(f"{mark} {result.help}{detail}", style=style))
    return Group(*lines)


def list_workloads(workloads: Sequence[Workload]) -> RenderableType:
    """List workloads with a sentence each."""
    return _list([(workload.name, workload.description["description"]) for workload in workloads])


def _list(entries: Sequence[tuple[str, str]]) -> TerminalTable:
    """List names with what they are."""
    table = TerminalTable(["name", "about"], texts=(0, 1), left=(0, 1), has_header=False)
    for entry in entries:
        table.add_row(*entry)
    return table


def describe_workload(workload: Workload, source: str) -> RenderableType:
    """Show all of a workload; ``source`` says where its text is."""
    about = workload.description
    parts: list[RenderableType] = [
        Text(f"{about['name']}: {about['description']}", style="bold"),
        Text(source, style="dim"),
        _heading("Tables"),
    ]
    for table in about["tables"]:
        columns = ", ".join(f"{column['name']} {column['generator']}" for column in table["columns"])
        parts.append(Text(f"{table['name']} ({table['rows']:,} rows at scale {workload.scale:g}): {columns}"))
    parts.append(_heading("Transactions"))
    for transaction in about["transactions"]:
        reads = " (only reads)" if transaction["read_only"] else ""
        parts.append(Text(f"{transaction['name']}{reads}: {transaction['help']}"))
    parts.append(_heading("Mixes"))
    for mix in about["mixes"]:
        weights = ", ".join(
            f"{name} {mix['weights'][name]:g}" for name in workload.transactions if name in mix["weights"]
        )
        parts.append(Text(f"{mix['name']}: {weights}"))
    if about["options"]:
        parts.append(_heading("Options"))
        parts += [
            Text(
                f"{option['name']} ({option['kind']}; {describe_value(option['default'])}"
                f"{'' if option['data'] else '; not of the data'}): {option['help']}"
            )
            for option in about["options"]
        ]
    if about["invariants"]:
        parts.append(_heading("Invariants"))
        for invariant in about["invariants"]:
            when = "" if invariant["when"] == "always" else " (until a run has changed the data)"
            parts.append(Text(f"{invariant['statement']}: {invariant['help']}{when}"))
    parts.append(_heading("SQL"))
    sql = "\n\n".join(
        f"-- name: {statement['name']}\n{statement['sql']};"
        for statement in (*about["statements"], *about["checks"])
    )
    sections = "\n\n".join(
        f"-- schema, {name}\n{about['schema'][name]};"
        for name in ("create", "keys", "drop")
        if about["schema"][name]
    )
    parts.append(Syntax(f"{sql}\n\n{sections}", "sql", background_color="default", word_wrap=True))
    return Group(*parts)


def trials_text(trials: Sequence[Trial]) -> RenderableType:
    """Show the outcome of a trial on each dialect."""
    parts: list[RenderableType] = []
    for trial in trials:
        how = (
            f"Lua and SQL, on a temporary database at scale {trial.scale:g}"
            if trial.database
            else "Lua alone: one made-up row answers each statement, and no SQL runs"
        )
        parts.append(_heading(trial.dialect))
        parts.append(Text(f"not tried: {trial.not_tried}" if trial.not_tried else how, style="dim"))
        parts += [Text(f"WRONG: {check}", style="red") for check in trial.checks]
        parts += [_tried_text(tried) for tried in trial.transactions]
    return Group(*parts)


def _tried_text(tried: Tried) -> Text:
    if tried.fault:
        return Text(f"{tried.transaction}: WRONG: {tried.fault}", style="red")
    counts = [f"{tried.committed:,} committed"]
    counts += [f"{tried.aborted:,} aborted"] if tried.aborted else []
    counts += [f"{tried.failed:,} failed ({tried.error})"] if tried.failed else []
    return Text(f"{tried.transaction}: {', '.join(counts)}")


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold cyan")


def list_systems() -> RenderableType:
    """List providers, drivers and evaluators."""
    parts: list[RenderableType] = []
    entries = {
        "Providers of systems (system.provider)": [
            (name, registry.load("systems", name).summary) for name in registry.names("systems")
        ],
        "Drivers, by the scheme of a URL": [(f"{scheme}://", about) for scheme, about in _engine.schemes()],
        "Services that speak a known protocol (load.service)": [
            (name, f"{service(name).product}: {service(name).notice}") for name in service_names()
        ],
        "Evaluators (measure.evaluator)": [
            (name, registry.load("evaluators", name).summary) for name in registry.names("evaluators")
        ],
    }
    for heading, rows in entries.items():
        parts += [_heading(heading), _list(rows)]
    return Group(*parts)
