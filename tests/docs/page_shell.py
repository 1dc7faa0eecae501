"""The pages done as they say: their files written, their commands given to a shell, word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docs_pages import Block, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHELLS = ("console", "sh", "shell", "bash")

NOT_RUN = {
    "nephoscope storage capture capture-small --out corpora/small": "docs/storage/README.md captures, too",
    "fio --name=replay --read_iolog=made.iolog --ioengine=io_uring": "needs fio, which is not installed",
    "nephoscope storage serve --port 7001 --append 1ms --read 0.5ms --per-record 2us --stall 3:10s+2s": (
        "a service without an end on fixed ports; tests/storage/test_page_store.py starts and asks it"
    ),
    "nephoscope storage run corpus --target 'page-store://127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003?quorum=2'": (
        "needs that service; tests/storage/test_page_store.py"
    ),
    "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…": "credentials of the reader's",
    "nephoscope storage run corpus --target "
    "'s3://bucket/prefix?endpoint=http://127.0.0.1:9000&region=us-east-1&object=65536'": (
        "an object store of the reader's; tests/storage/test_s3.py has one"
    ),
    "nephoscope bisect bench.toml --good v1.4 --bad main --command './build-and-start \"$NEPHOSCOPE_VERSION\"'"
    " --response p95_ms@RW": "a database of the reader's; tests/bisection bisects a repository",
    "nephoscope bisect bench.toml --versions images.txt --command 'docker run --detach --rm --name db"
    ' "$NEPHOSCOPE_VERSION" && echo postgresql://bench@localhost/bench\'': "images of the reader's",
    **dict.fromkeys(
        (
            "nephoscope ctl runs/latest",
            "nephoscope ctl runs/latest set rate=2000 mix=RO --over 10s",
            "nephoscope ctl runs/latest pause",
            "nephoscope ctl runs/latest stop",
        ),
        "a run that goes on; tests/cli/test_ctl.py steers one",
    ),
    "pip install 'nephoscope[prometheus,otlp]'": "the tests have both libraries",
    **dict.fromkeys(
        (
            "nephoscope run study.toml --prometheus 0.0.0.0:9464",
            "nephoscope run study.toml --otlp http://collector:4318",
        ),
        "monitoring of the reader's; tests/publishing has a real Prometheus, and a receiver",
    ),
    **dict.fromkeys(
        (
            "nephoscope run consistency",
            "nephoscope run consistency --set system.provider=embedded-mariadb",
            "nephoscope run long-fork",
        ),
        "minutes; tests/evaluators/test_consistency.py runs shorter ones",
    ),
    **dict.fromkeys(
        (
            "nephoscope run steady",
            "nephoscope run steady --set system.provider=embedded-mariadb --set system.settings={}",
        ),
        "minutes; tests/evaluators/test_steady.py runs a shorter one",
    ),
    **dict.fromkeys(
        (
            "nephoscope run slo",
            "nephoscope run slo --set system.provider=embedded-mariadb --set system.settings={}",
        ),
        "minutes; tests/evaluators/test_slo.py runs a shorter one",
    ),
    **dict.fromkeys(
        (
            "nephoscope run metastability",
            "nephoscope run metastability --set system.provider=embedded-mariadb",
        ),
        "minutes; tests/evaluators/test_metastability.py runs a shorter one",
    ),
    **dict.fromkeys(
        (
            "nephoscope run availability",
            "nephoscope run availability --set system.provider=embedded-mariadb",
        ),
        "minutes; tests/evaluators/test_availability.py runs shorter ones",
    ),
    **dict.fromkeys(
        (
            "nephoscope run isolation",
            "nephoscope run hermitage",
            "nephoscope histories check runs/latest",
            "nephoscope histories check history.edn",
            (
                "nephoscope histories export runs/latest/histories/1.history --form elle-json --kind rw-register"
                " --out history.json"
            ),
        ),
        "minutes, and files of the reader's; tests/evaluators/test_isolation.py runs shorter ones",
    ),
    **dict.fromkeys(
        (
            "nephoscope trace import postgresql.csv --out trace.parquet",
            (
                "nephoscope trace record --from postgresql://10.0.0.5:5432/ --listen 127.0.0.1:6432"
                " --out trace.parquet"
            ),
            "nephoscope trace mask trace.parquet --out masked.parquet",
            "nephoscope trace describe trace.parquet",
            (
                "nephoscope trace replay trace.parquet --to postgresql://me@localhost/copy --order commits"
                " --out replayed.parquet"
            ),
            "nephoscope trace workload trace.parquet --out shop",
            "export RW_URL=postgresql://me@localhost/copy",
            "nephoscope run shop/study.toml",
        ),
        "a log of the reader's; tests/traces has those of real servers",
    ),
    "make quickstart": "tests/quickstart runs what it runs, nephoscope quickstart; the tests are built by make",
    "make test": "it is what runs these tests",
    "export BENCH_URL='postgresql://bench@db.example.com/bench?sslmode=verify-full'": "a server of the reader's",
    "nephoscope calibrate": "five minutes; tests/calibration runs every case in its short form",
    "nephoscope calibrate lag": "tests/calibration runs these cases",
    "nephoscope calibrate --short": "two minutes; tests/calibration runs these cases",
    "nephoscope calibrate --json": "five minutes; tests/calibration looks at the JSON",
    **dict.fromkeys(
        (
            "nephoscope experiment experiment",
            "nephoscope experiment cost-vs-performance",
            "nephoscope experiment thesis-matrix",
            "nephoscope experiment ring-strategies",
            "nephoscope experiment ring-replication",
        ),
        "minutes; tests/experiments runs smaller ones",
    ),
    "nephoscope report experiments/experiment --format markdown": "tests/experiments looks at such a report",
    "NEPHOSCOPE_SOAK_TRANSACTIONS=1000000 cargo test --release -p nephoscope-soak --test soak -- --nocapture": (
        "minutes on both processors; cargo test runs the short form"
    ),
}
"""Commands that no test gives to a shell as they stand, and why not."""

TOOLS = Path(sys.executable).parent
"""Where the commands of this environment are."""


@dataclass(frozen=True)
class Step:
    """A command that a page gives, and the lines that the page says it prints."""

    block: Block
    command: str
    shown: list[str]

    @property
    def bare(self) -> str:
        """The command without the comment behind it."""
        return re.sub(r"\s+# .*$", "", self.command)

    def __str__(self) -> str:
        return f"{self.block}: {self.command}"


def steps_of(block: Block) -> Iterator[Step]:
    """Take a block of commands apart: lines after ``$`` in a console, every line of a script."""
    if block.language != "console":
        lines = block.text.splitlines()
        while lines:
            command, lines = _first_of(lines)
            yield Step(block, command, [])
        return
    for step in ("\n" + block.text).split("\n$ ")[1:]:
        command, shown = _first_of(step.splitlines())
        yield Step(block, command, shown)


def _first_of(lines: list[str]) -> tuple[str, list[str]]:
    """Take the first command, which a here-document or an open quotation may continue, from the other lines."""
    end = 1
    if document := re.search(r"<<'(\w+)'$", lines[0]):
        end = lines.index(document[1]) + 1
    while end < len(lines) and "\n".join(lines[:end]).count("'") % 2 and not document:
        end += 1
    return "\n".join(lines[:end]), lines[end:]


def steps_on(page: Path) -> list[Step]:
    """Give the steps of a page that a test has to run."""
    steps = (step for block in blocks(page) if block.language in SHELLS for step in steps_of(block))
    return [step for step in steps if step.bare not in NOT_RUN]


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page names; what is named again goes on."""
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(block.text + "\n")


def do(
    step: Step,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    tools: Path = TOOLS,
    *,
    code: int = 0,
) -> list[str]:
    """Give a command to a shell, as it stands on the page; return the lines that it prints.

    ``code`` is how it has to end; the lines of a failure or of bad input (1, 2) are those of its error.
    ``tools`` is the folder of the environment that a reader has activated.
    """
    given = {**os.environ, **(environment or {}), "PATH": f"{tools}:{os.environ['PATH']}"}
    began = time.monotonic()
    ended = subprocess.run(
        ["/bin/bash", "-c", step.command],
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    assert ended.returncode == code, f"{step} (after {took:.1f} s)\n{ended.stdout}\n{ended.stderr}"
    return (ended.stderr if code in {1, 2} else ended.stdout).splitlines()
