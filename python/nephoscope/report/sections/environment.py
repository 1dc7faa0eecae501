"""With what it was measured, and how to measure it again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit.parts import Fact, FactTable
from nephoscope.tables.numbers import count, plain

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

# The store redacts URLs; the page does not rely on it, because a report is handed on.
_SECRET = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s/]*@", re.IGNORECASE)


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
    """Return the commands, with what each does."""
    folder = f"runs/{run.reader.name}"
    return (
        Fact(label="Measure it again", value=f"nephoscope run {folder}/study.toml"),
        Fact(label="Write this page again", value=f"nephoscope report {folder}"),
        Fact(label="Compare with another run", value=f"nephoscope compare {folder} runs/latest"),
    )


def redacted(text: str) -> str:
    """Return the text without the password of any URL in it."""
    return _SECRET.sub(r"\g<head>:•••@", text)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[Fact]:
    for key, value in table.items():
        name = f"{prefix}{str(key).replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name} › ")  # noqa: RUF001 - a breadcrumb, and no "greater than"
        elif value not in (None, [], ""):
            yield Fact(label=name, value=redacted(text_of(value)))


def text_of(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return a setting or a fact in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text_of(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(text_of(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return plain(value)
    return str(value)
