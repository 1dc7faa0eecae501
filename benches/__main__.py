"""Run benchmarks: all of them, or ``--only name``."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benches.registry import BENCHMARKS, ON_DEMAND
from benches.results import Result, keep
from nephoscope.measuring.manifest import host_facts


def main() -> None:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", choices=BENCHMARKS, action="append")
    chosen = parser.parse_args().only or [name for name in BENCHMARKS if name not in ON_DEMAND]
    console = Console(highlight=False)
    host = host_facts()
    console.print(
        f"{host['cpu']}, {host['cores']:g} cores, Linux {host['kernel']}, load {os.getloadavg()[0]:.1f}"
    )
    found: list[Result] = []
    for name in chosen:
        folder = Path(tempfile.mkdtemp(prefix="nephoscope-bench-"))
        # A server that dropped its privileges has to reach its folder.
        folder.chmod(0o755)
        try:
            for entry in BENCHMARKS[name](folder):
                found.append(entry)
                console.print(f"[bold]{entry.figure}[/]: {entry.ratio:.3f} {entry.detail}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    keep(found)
    console.print(_table(found))


def _table(found: list[Result]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in ("figure", "against", "ratio", "spread", "bar", "holds"):
        table.add_column(column, justify="right" if column in ("ratio", "spread") else "left")
    for entry in found:
        low, high = entry.spread
        table.add_row(
            entry.figure,
            entry.peer,
            f"{entry.ratio:.3f}",
            f"{low:.3f}–{high:.3f}",  # noqa: RUF001 - a range
            entry.bar,
            "yes" if entry.holds else "NO",
        )
    return table


if __name__ == "__main__":
    main()
