"""Loading a workload's data, against psql."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from benches.results import Result, at_most, result
from benches.servers import BIN, NEPHOSCOPE, STUDY, Server, server, timed

if TYPE_CHECKING:
    from collections.abc import Iterator


def load(folder: Path) -> Iterator[Result]:
    """Loading sales at scale factor 1 against ``psql \\copy`` of the same rows from ready files."""
    with server(folder / "server") as on:
        study, small = folder / "study.toml", folder / "small.toml"
        study.write_text(STUDY.format(url=on.url, scale=1))
        small.write_text(STUDY.format(url=on.url, scale=0.1))
        memory = {0.1: timed([NEPHOSCOPE, "load", str(small)]).memory}
        timed([NEPHOSCOPE, "load", str(study), "--force"])
        copy = _ready_files(on, folder)
        ours, theirs = [], []
        for _ in range(3):
            on.run("psql", "-qc", "CHECKPOINT")
            theirs.append(on.timed([str(BIN / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copy)]).wall)
            on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
            on.run("psql", "-qc", "DROP TABLE nephoscope_data")
            on.run("psql", "-qc", "CHECKPOINT")
            used = timed([NEPHOSCOPE, "load", str(study)])
            ours.append(used.wall)
            memory[1] = used.memory
            on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
    bar = at_most(1.1)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    detail = (
        f"{statistics.median(ours):.1f} s against {statistics.median(theirs):.1f} s, keys and indexes included; "
        "the peer's files were made beforehand"
    )
    yield result("loading sales, SF 1", "psql \\copy of ready files", ratios, bar, detail)
    bar = at_most(1.0)
    detail = f"largest resident set {memory[1]:.0f} MB at SF 1, {memory[0.1]:.0f} MB at SF 0.1"
    yield result("memory of loading, SF 1", "200 MB", [memory[1] / 200], bar, detail)


def _ready_files(on: Server, folder: Path) -> Path:
    """Write the loaded tables as files, empty the database, and give a script that loads the files."""
    workloads = Path(__file__).parent.parent / "workloads"
    schema = (workloads / "sales" / "schema.sql").read_text()
    sections = {
        part.split("\n", 1)[0].strip(): part.split("\n", 1)[1] for part in schema.split("-- name:")[1:]
    }
    script = [sections["create"]]
    for table in ("customer", "orders", "orderline"):
        file = folder / f"{table}.txt"
        on.run("psql", "-qc", f"\\copy {table} TO '{file}'")
        script.append(f"\\copy {table} FROM '{file}'")
    script.append(sections["keys"])
    on.run("psql", "-qc", "DROP TABLE customer, orders, orderline")
    path = folder / "copy.sql"
    path.write_text("\n".join(script))
    return path
