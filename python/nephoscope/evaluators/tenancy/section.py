"""What each tenant got under each pattern of load, alone and beside the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit import method, scored
from nephoscope.report.kit.charts import category
from nephoscope.tables.numbers import count, finite, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.report.kit.run import Run


from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 80, "tenancy", "Tenants"
NO_MIX = {"pattern"}


class TenantRow(Part):
    """What a tenant got in a pattern; ``share`` is of its own throughput alone, 0 to 1 but for noise."""

    tenant: str
    sessions: str = ""
    tps: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    share: Number = None
    color: str = "c0"


class TenancyPattern(Part):
    """A pattern of load on several tenants."""

    name: str
    t: Number = None
    jain: Number = None
    rows: tuple[TenantRow, ...] = ()


class TenancySection(Part):
    """The tenants under each pattern."""

    patterns: tuple[TenancyPattern, ...]
    statement: str
    method: tuple[Method, ...] = ()


def build(run: Run) -> TenancySection | None:
    """Return the section; None where no evaluator has measured tenants."""
    found = scored.details(run, "tenancy")
    patterns = {str(name): scored.table(one) for name, one in scored.table(found.get("patterns")).items()}
    if not patterns:
        return None
    built = tuple(_pattern(name, pattern) for name, pattern in patterns.items())
    return TenancySection(patterns=built, statement=_statement(built), method=method.of(run, "tenancy"))


def _pattern(name: str, pattern: Mapping[str, Any]) -> TenancyPattern:
    sessions = pattern.get("sessions")
    columns = sessions if isinstance(sessions, list) else []
    rows = []
    for place, (tenant, entry) in enumerate(scored.table(pattern.get("tenants")).items()):
        given = scored.table(entry)
        latency = scored.table(given.get("latency_ms"))
        slots = columns[place] if place < len(columns) and isinstance(columns[place], list) else []
        rows.append(
            TenantRow(
                tenant=str(tenant),
                sessions=", ".join(str(count) for count in slots),
                tps=finite(given.get("tps")),
                p50_ms=finite(latency.get("p50")),
                p99_ms=finite(latency.get("p99")),
                share=finite(given.get("share")),
                color=category(place)[0],
            )
        )
    return TenancyPattern(
        name=name.replace("_", " "),
        t=finite(pattern.get("t")),
        jain=finite(pattern.get("jain")),
        rows=tuple(rows),
    )


def _statement(patterns: tuple[TenancyPattern, ...]) -> str:
    """Say in a sentence who loses the most to the others."""
    shares = [
        (row.share, row.tenant, pattern)
        for pattern in patterns
        for row in pattern.rows
        if row.share is not None
    ]
    if not shares:
        return (
            "No tenant was measured both alone and beside others, so nothing is known of their interference."
        )
    share, tenant, pattern = min(shares, key=lambda entry: entry[0])
    fairness = "" if pattern.jain is None else f"; Jain's fairness index there is {number(pattern.jain, 3)}"
    return (
        f"Beside the others {tenant} keeps {percent(share)} of the throughput that it has alone, the least of all "
        f"tenants and patterns ({pattern.name}){fairness}."
    )


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    told = scored.details(run, "tenancy")
    patterns = [
        str(name).replace("_", " ") for name in scored.table(told.get("patterns") or detail.get("patterns"))
    ]
    tenants = len(scored.sequence(told.get("tenants")))
    shared = f"; {count(tenants)} tenants, each a {told.get('share')}" if tenants else ""
    return f"{', '.join(patterns)}{shared}" if patterns else ""


HOW = {"T": _how}
