"""The environment of the measurement, and the command that repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.report.kit.method import redacted, text_of
from nephoscope.report.kit.parts import Fact, FactTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.report.kit.run import Run

# The tables of the manifest and their headings; what else it holds comes after them.
_HEADINGS = {
    "system": "System under test",
    "workload": "Workload",
    "load": "Load generator",
    "host": "Client host",
    "clock": "Clock",
}
_ELSEWHERE = frozenset({"totals", "study", "status", "reason", "inputs"})


def build(run: Run) -> tuple[FactTable, ...]:
    """Return the manifest as tables of facts."""
    manifest = run.manifest
    tables = [
        FactTable(heading=heading, facts=tuple(_flat(run.table(key))))
        for key, heading in _HEADINGS.items()
        if run.table(key)
    ]
    rest = {key: value for key, value in manifest.items() if key not in _HEADINGS and key not in _ELSEWHERE}
    if rest:
        tables.append(FactTable(heading="Instrument", facts=tuple(_flat(rest))))
    return tuple(table for table in tables if table.facts)


def reproduce(run: Run) -> tuple[Fact, ...]:
    """Return the commands with their purposes."""
    folder = f"runs/{run.reader.name}"
    return (
        Fact(label="Measure it again", value=f"nephoscope run {folder}/study.toml"),
        Fact(label="Write this page again", value=f"nephoscope report {folder}"),
        Fact(label="Compare with another run", value=f"nephoscope compare {folder} runs/latest"),
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[Fact]:
    for key, value in table.items():
        name = f"{prefix}{str(key).replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name} › ")  # noqa: RUF001 - a breadcrumb, and no "greater than"
        elif value not in (None, [], ""):
            yield Fact(label=name, value=redacted(text_of(value)))
