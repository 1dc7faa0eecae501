"""Loading a workload's data, against the loaders of the products: ready files of the same rows."""

from __future__ import annotations

import statistics
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from benches.results import Result, at_most, result
from benches.servers import BIN, NEPHOSCOPE, Server, load_study, mariadb, mariadb_client, server, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES = {
    "sales": ("customer", "orders", "orderline"),
    "tpcc": (
        "warehouse",
        "district",
        "customer",
        "history",
        "orders",
        "new_order",
        "order_line",
        "item",
        "stock",
    ),
}
_BAR = 1.1
_ROUNDS = 3


class Loader(ABC):
    """A product's own way of loading ready files."""

    peer: str
    schema: str
    """The workload's file with its schema."""

    def __init__(self, on: Server, workload: str = "sales") -> None:
        """Take the server that is loaded, and what is loaded."""
        self.on = on
        self.workload = workload

    @abstractmethod
    def settle(self) -> None:
        """Have what was written before reach the disk."""

    @abstractmethod
    def save(self, table: str, file: Path) -> None:
        """Write a table's rows as a file."""

    @abstractmethod
    def command(self, table: str, file: Path) -> str:
        """Give the command of a script that loads a file."""

    @abstractmethod
    def run(self, sql: str) -> None:
        """Run SQL."""

    @abstractmethod
    def timed(self, script: Path) -> float:
        """Run a script; give its seconds."""

    def script(self, folder: Path) -> Path:
        """Write the loaded tables as files, empty the database, and give a script that loads the files."""
        text = (Path(__file__).parent.parent / "workloads" / self.workload / self.schema).read_text()
        sections = {
            part.split("\n", 1)[0].strip(): part.split("\n", 1)[1] for part in text.split("-- name:")[1:]
        }
        script = [sections["create"]]
        for table in _TABLES[self.workload]:
            file = folder / f"{table}.txt"
            self.save(table, file)
            script.append(self.command(table, file))
        script.append(sections["keys"])
        self.drop()
        path = folder / "load.sql"
        path.write_text("\n".join(script))
        return path

    def drop(self) -> None:
        """Drop the workload's tables."""
        self.run(f"DROP TABLE {', '.join(_TABLES[self.workload])}")


class Psql(Loader):
    """PostgreSQL's client."""

    peer = "psql \\copy of ready files"
    schema = "schema.sql"

    def settle(self) -> None:
        """Make a checkpoint."""
        self.run("CHECKPOINT")

    def save(self, table: str, file: Path) -> None:
        """Write a table's rows as COPY's text."""
        self.run(f"\\copy {table} TO '{file}'")

    def command(self, table: str, file: Path) -> str:
        """Give psql's command."""
        return f"\\copy {table} FROM '{file}'"

    def run(self, sql: str) -> None:
        """Run SQL, or a command of psql."""
        self.on.run("psql", "-qc", sql)

    def timed(self, script: Path) -> float:
        """Run a script; give its seconds."""
        return self.on.timed([str(BIN / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script)]).wall


class Mariadb(Loader):
    """MariaDB's client."""

    peer = "LOAD DATA LOCAL of ready files by mariadb"
    schema = "schema.mysql.sql"

    def settle(self) -> None:
        """Flush the tables; InnoDB writes its dirty pages in the background."""
        self.run("FLUSH TABLES")

    def save(self, table: str, file: Path) -> None:
        """Write a table's rows as LOAD DATA reads them: tabs, backslashes, no header. No cell is NULL."""
        options = ("--batch", "--quick", "--skip-column-names", "-e", f"SELECT * FROM {table}")
        with file.open("w") as rows:
            command = mariadb_client(self.on, *options)
            subprocess.run(command, env=self.on.environment, stdout=rows, check=True)

    def command(self, table: str, file: Path) -> str:
        """Give the statement."""
        return f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table} CHARACTER SET utf8mb4;"

    def run(self, sql: str) -> None:
        """Run SQL."""
        self.on.timed(mariadb_client(self.on, "-e", sql))

    def timed(self, script: Path) -> float:
        """Run a script; give its seconds."""
        return self.on.timed(mariadb_client(self.on, "--local-infile=1", "-e", f"source {script}")).wall


def load(folder: Path) -> Iterator[Result]:
    """Loading sales at scale factor 1 into PostgreSQL against ``psql \\copy`` of the same rows from ready files."""
    with server(folder / "server") as on:
        small = load_study(on.url, folder, "sales", 0.1)
        little = timed([NEPHOSCOPE, "load", str(small)]).memory
        found, memory = _side_by_side(Psql(on), folder, "")
        yield found
    detail = f"largest resident set {memory:.0f} MB at SF 1, {little:.0f} MB at SF 0.1"
    yield result("memory of loading, SF 1", "200 MB", [memory / 200], at_most(1.0), detail)


def load_tpcc(folder: Path) -> Iterator[Result]:
    """Loading a warehouse of TPC-C into PostgreSQL against ``psql \\copy`` of the same rows with the same keys."""
    with server(folder / "server") as on:
        yield _side_by_side(Psql(on, "tpcc"), folder, "", 1.2)[0]


def load_mariadb(folder: Path) -> Iterator[Result]:
    """Loading sales at scale factor 1 into MariaDB against ``LOAD DATA LOCAL`` of the same rows from ready files."""
    with mariadb(folder / "server") as on:
        yield _side_by_side(Mariadb(on), folder, " into MariaDB")[0]


def _side_by_side(loader: Loader, folder: Path, where: str, bar: float = _BAR) -> tuple[Result, float]:
    """Load by turns; give the result, and the largest resident set of ours, in MB."""
    study = load_study(loader.on.url, folder, loader.workload, 1)
    timed([NEPHOSCOPE, "load", str(study), "--force"])
    script = loader.script(folder)
    ours, theirs, memory = [], [], 0.0
    for _ in range(_ROUNDS):
        loader.settle()
        theirs.append(loader.timed(script))
        loader.drop()
        loader.run("DROP TABLE nephoscope_data")
        loader.settle()
        used = timed([NEPHOSCOPE, "load", str(study)])
        ours.append(used.wall)
        memory = used.memory
        loader.drop()
    detail = (
        f"{statistics.median(ours):.1f} s against {statistics.median(theirs):.1f} s, keys and indexes included; "
        "the peer's files were made beforehand"
    )
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    figure = f"loading {loader.workload}, SF 1{where}"
    return result(figure, loader.peer, ratios, at_most(bar), detail), memory
