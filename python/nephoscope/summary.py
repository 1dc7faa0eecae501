"""What commands print: tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from nephoscope import _engine, registry
from nephoscope.store import FILES
from nephoscope.units import describe_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from nephoscope.calibrate import Reading
    from nephoscope.compare import Figure
    from nephoscope.data import CheckResult
    from nephoscope.measure import Outcome
    from nephoscope.workload import Workload

_MARKS = {
    "ok": ("✓", "green"),
    "note": ("·", "cyan"),
    "warning": ("!", "yellow"),
    "problem": ("✗", "bold red"),
}


def _table(*columns: str, title: str | None = None) -> Table:
    """Make a table whose first column is text and whose others are numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=True)
    return table


def _spread(value: float, ci95: Sequence[float] | None) -> str:
    """Write a value with the half-width of its interval."""
    if ci95 is None:
        return f"{value:,.0f}"
    return f"{value:,.0f} ± {(ci95[1] - ci95[0]) / 2:,.0f}"


def summary(outcome: Outcome) -> RenderableType:
    """Sum up a run: P as in CloudyBench's Table V, verdicts, where the report is."""
    scores = outcome.scores
    parts: list[RenderableType] = [Text()]
    if score := scores["scores"].get("P"):
        parts.append(_p_table(score))
    elif points := [point for point in scores["points"] if not point.get("slot")]:
        parts.append(_point_table(points))
    if score := scores["scores"].get("E1"):
        parts.append(_e1_table(score))
    if reason := scores["absent"].get("P") if "P" not in scores["scores"] else None:
        parts.append(Text(f"no P-Score: {reason}", style="yellow"))
    if score := scores["scores"].get("F"):
        parts += [Text(), _failure_table(score, scores)]
    if score := scores["scores"].get("C"):
        parts += [Text(), _lag_table(score)]
    if tenancy := scores.get("details", {}).get("tenancy"):
        parts += [Text(), _tenancy_table(tenancy, scores)]
    for mix, found in scores.get("saturation", {}).items():
        count = found["concurrency"]
        parts.append(Text(f"{mix}: saturated at {count} session{'s' if count != 1 else ''} ({found['why']})"))
    parts.append(Text())
    for verdict in scores["verdicts"]:
        mark, style = _MARKS.get(verdict["level"], _MARKS["note"])
        parts.append(Text(f"{mark} {verdict['verdict']}: {verdict['detail']}", style=style))
    parts += [Text(f"! {warning}", style="yellow") for warning in scores["warnings"]]
    parts += [Text(), Text(f"report: {outcome.folder / FILES.report}", style="bold")]
    return Group(*parts)


def _p_table(score: Mapping[str, Any]) -> Table:
    cost = score["detail"]["cost_per_minute"]
    has_ro = any(entry.get("ro_share") for entry in score["detail"]["mixes"].values())
    columns = ("mix", "sessions", "TPS", "p50", "p99", "P", *(["on ro"] if has_ro else []))
    table = _table(*columns, title=f"P-Score: TPS per $/min, at ${cost:.4f} a minute")
    for mix, entry in score["detail"]["mixes"].items():
        table.add_row(
            mix,
            f"{entry['concurrency']:g}" if entry["concurrency"] is not None else "all",
            _spread(entry["tps"], entry["ci95"]),
            _latency(entry, "p50"),
            _latency(entry, "p99"),
            _spread(entry["p"], entry["p_ci95"]),
            *([f"{entry.get('ro_share') or 0:.0%}"] if has_ro else []),
        )
    table.add_section()
    table.add_row("mean", "", "", "", "", Text(_spread(score["value"], score["ci95"]), style="bold green"))
    return table


def _e1_table(score: Mapping[str, Any]) -> Table:
    entries = score["detail"]["patterns"]
    table = _table(
        "pattern",
        "sessions",
        "TPS",
        "slowest scaling",
        "cost",
        "E1",
        title=f"E1-Score: TPS per $ over {entries[0]['window_s']:.0f} s",
    )
    for entry in entries:
        scalings = [change["scaling_s"] for change in entry["transitions"] if change["scaling_s"] is not None]
        table.add_row(
            entry["pattern"],
            ", ".join(str(slot["sessions"]) for slot in entry["slots"]),
            _spread(entry["mean_tps"], entry["ci95"]),
            f"{max(scalings):.3g} s" if scalings else "none",
            f"${entry['cost']:.3g}",
            _spread(entry["e1"], entry["e1_ci95"]),
        )
    table.add_section()
    table.add_row("mean", "", "", "", "", Text(_spread(score["value"], score["ci95"]), style="bold green"))
    return table


def _failure_table(score: Mapping[str, Any], scores: Mapping[str, Any]) -> Table:
    recovery = scores["scores"].get("R")
    shown = f"R {_seconds(recovery['value'])}" if recovery else f"no R: {scores['absent'].get('R')}"
    title = f"F-Score: {_seconds(score['value'])} until the service is back; {shown}"
    table = _table("failure", "outage", "to full TPS", "probes failed", "late", "lost commits", title=title)
    for failure in score["detail"]["failures"]:
        back, tps_back = failure["service_back_s"], failure["tps_back_s"]
        outage = _seconds(back - failure["injected_s"]) if failure["interrupted"] else "no interruption"
        table.add_row(
            f"{score['detail']['fault']} of {failure['role']} {failure['repetition']}",
            outage,
            _seconds(tps_back - back) if tps_back is not None else "not seen",
            f"{failure['failed_probes']:,}",
            f"{failure['late_probes']:,}",
            "–" if failure["lost"] is None else f"{failure['lost']:,} of {failure['acknowledged']:,}",  # noqa: RUF001 - a dash for what is absent
        )
    return table


def _lag_table(score: Mapping[str, Any]) -> Table:
    kinds = ("insert", "update", "delete")
    title = f"C-Score: {_seconds(score['value'])} over {score['detail']['replicas']} replica(s)"
    table = _table("load", *(f"{kind} p50 / p99" for kind in kinds), title=title)
    for load, lags in score["detail"]["lag_ms"].items():
        known = [lags.get(kind) for kind in kinds]
        cells = [f"{lag['p50']:.2g} / {lag['p99']:.3g} ms" if lag else "none seen" for lag in known]
        table.add_row(load, *cells)
    return table


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _tenancy_table(found: Mapping[str, Any], scores: Mapping[str, Any]) -> Table:
    score = scores["scores"].get("T")
    title = "T-Score: TPS per $/min" if score else f"no T-Score: {scores['absent'].get('T')}"
    table = _table("pattern", "T", *(f"{tenant} TPS" for tenant in found["tenants"]), "fairness", title=title)
    for name, pattern in found["patterns"].items():
        shown = [
            f"{entry['tps']:,.0f}"
            + (f" ({entry['share']:.0%} of alone)" if entry["share"] is not None else "")
            for entry in pattern["tenants"].values()
        ]
        jain = "–" if pattern["jain"] is None else f"{pattern['jain']:.2f}"  # noqa: RUF001 - as above
        table.add_row(name, "–" if pattern["t"] is None else f"{pattern['t']:,.0f}", *shown, jain)  # noqa: RUF001
    if score:
        table.add_section()
        table.add_row("mean", Text(_spread(score["value"], score["ci95"]), style="bold green"))
    return table


def _latency(figures: Mapping[str, Any], name: str) -> str:
    """Write a percentile of a point or a mix."""
    latency = figures["latency_ms"]
    return f"{latency[name]:.3g} ms" if latency else "–"  # noqa: RUF001 - a dash for what is absent


def _point_table(points: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("phase", "TPS", "p50", "p99", "max", "failed", "dropped")
    for point in points:
        level = f" c={point['concurrency']:g}" if point["concurrency"] is not None else ""
        level = f" {point['rate']:g}/s" if point["rate"] is not None else level
        table.add_row(
            f"{point['mix'] or 'load'}{level}",
            _spread(point["tps"], point["ci95"]),
            *(_latency(point, name) for name in ("p50", "p99", "max")),
            f"{point['failed']:,}",
            f"{point['dropped']:,}",
        )
    return table


def next_steps() -> RenderableType:
    """Say what to type next, for one's own database."""
    heading = Text("\nNext, your own database", style="bold")
    text = """ (an empty one, or a schema of its own):

  cat > mine.toml <<'END'
  study.name = "mine"
  [system]
  provider = "url"
  rw = "postgresql://user@host/database"   # or ${DATABASE_URL}; passwords from ~/.pgpass or PGPASSWORD
  resources = { vcores = 4, memory_gb = 16, storage_gb = 100, iops = 3000, network_gbps = 10 }
  [workload]
  name = "sales"
  scale = 1
  [[measure]]
  evaluator = "throughput"
  END
  nephoscope run mine.toml
"""
    return heading.append(text.rstrip("\n"), style="not bold")


def check_table(workload: str, results: Sequence[CheckResult]) -> RenderableType:
    """Show which invariants hold."""
    if not results:
        return Text(f"{workload}: there is nothing to check")
    lines: list[RenderableType] = []
    for result in results:
        mark, style = {"holds": _MARKS["ok"], "broken": _MARKS["problem"]}.get(result.verdict, _MARKS["note"])
        detail = f" ({result.verdict}: {result.detail})" if result.detail else ""
        lines.append(Text(f"{mark} {result.help}{detail}", style=style))
    return Group(*lines)


def comparison_table(figures: Sequence[Figure]) -> Table:
    """Show two runs side by side."""
    table = _table("figure", "baseline", "candidate", "difference", "interval", "verdict")
    styles = {"faster": "green", "slower": "red"}
    for figure in figures:
        found = figure.comparison
        relative = f"{found.relative:+.1%}" if found.relative is not None else f"{found.difference:+.4g}"
        low_high = found.relative_ci95
        interval = f"{low_high[0]:+.1%} … {low_high[1]:+.1%}" if low_high else "not known"
        table.add_row(
            f"{figure.name} ({figure.unit})",
            f"{figure.baseline:,.4g}",
            f"{figure.candidate:,.4g}",
            relative,
            interval,
            Text(found.verdict, style=styles.get(found.verdict, "dim")),
        )
    return table


def comparison_json(figures: Sequence[Figure], notes: Sequence[str]) -> dict[str, Any]:
    """Write a comparison for machines."""
    return {
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "baseline": figure.baseline,
                "candidate": figure.candidate,
                "difference": figure.comparison.difference,
                "ci95": figure.comparison.ci95,
                "relative": figure.comparison.relative,
                "relative_ci95": figure.comparison.relative_ci95,
                "verdict": figure.comparison.verdict,
                "note": figure.comparison.note,
            }
            for figure in figures
        ],
        "notes": list(notes),
    }


def calibration_table(readings: Sequence[Reading]) -> Table:
    """Show what was planted and what was read."""
    table = _table("check", "figure", "planted", "read", "error", "allowed", "verdict")
    for reading in readings:
        mark, style = _MARKS["ok"] if reading.holds else _MARKS["problem"]
        table.add_row(
            reading.check,
            f"{reading.figure} ({reading.unit})",
            f"{reading.planted:,.4g}",
            f"{reading.read:,.4g}",
            f"{reading.error:+.1%}",
            f"±{reading.tolerance:.1%}",
            Text(f"{mark} {'holds' if reading.holds else 'does not hold'}", style=style),
        )
    return table


def list_workloads(workloads: Sequence[Workload]) -> Table:
    """List workloads with a sentence each."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    for workload in workloads:
        table.add_row(workload.name, workload.description["description"])
    return table


def describe_workload(workload: Workload) -> RenderableType:
    """Show all of a workload."""
    about = workload.description
    parts: list[RenderableType] = [
        Text(f"{about['name']}: {about['description']}", style="bold"),
        Text(str(workload.folder), style="dim"),
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
                f"{option['name']} ({option['kind']}; {describe_value(option['default'])}): {option['help']}"
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


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold cyan")


def list_systems() -> RenderableType:
    """List providers, drivers and evaluators."""
    parts: list[RenderableType] = []
    entries = {
        "Providers of systems (system.provider)": [
            (name, registry.provider(name).summary) for name in registry.names("systems")
        ],
        "Drivers, by the scheme of a URL": [(f"{scheme}://", about) for scheme, about in _engine.schemes()],
        "Evaluators (measure.evaluator)": [
            (name, registry.evaluator(name).summary) for name in registry.names("evaluators")
        ],
    }
    for heading, rows in entries.items():
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        for name, about in rows:
            table.add_row(name, about)
        parts += [_heading(heading), table]
    return Group(*parts)
