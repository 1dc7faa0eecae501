"""What each command prints, and its exit code.

After a change that is meant: ``UPDATE_GOLDEN=1 pytest tests/cli -k golden``, and read the difference.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import typer
from rich.text import Text

from commands import Ended, call
from nephoscope import __version__, calibration
from nephoscope.calibration import Case, Reading, Result
from nephoscope.cli import app as cli
from nephoscope.study.packaged import packaged_workloads
from sample_studies import phases, sim_study, throughput, write_study
from stored_runs import Step, write_run

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = (
    "run",
    "quickstart",
    "load",
    "check",
    "report",
    "compare",
    "score",
    "calibrate",
    "workloads",
    "systems",
    "clean",
)


def check_golden(name: str, text: str, **places: Path) -> None:
    """Compare with a golden file, in which folders have names."""
    for word, place in places.items():
        text = text.replace(str(place), word.upper())
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def printed(ended: Ended) -> str:
    """Return what a command that succeeded has printed."""
    assert (ended.code, ended.err) == (0, "")
    return ended.out


# --- lists


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("workloads", ["workloads"]),
        ("workloads-sales", ["workloads", "sales", "--scale", "0.5"]),
        ("workloads-tpcb", ["workloads", "tpcb"]),
        ("systems", ["systems"]),
    ],
)
def test_golden_lists(name: str, arguments: list[str]) -> None:
    check_golden(name, printed(call(*arguments)), checkout=Path(__file__).parents[2])


def test_workloads_are_described_to_machines() -> None:
    (told,) = json.loads(printed(call("workloads", "tpcb", "--json")))
    assert told["name"] == "tpcb"
    assert [transaction["name"] for transaction in told["transactions"]] == [
        "tpcb_like",
        "simple_update",
        "select_only",
    ]
    assert len(json.loads(printed(call("workloads", "--json")))) == len(
        printed(call("workloads")).splitlines()
    )


def test_the_version_needs_no_command() -> None:
    assert printed(call("--version")) == f"nephoscope {__version__}\n"


# --- runs


def test_golden_report_of_a_sweep(tmp_path: Path) -> None:
    levels = {2: [100, 101, 99], 4: [180, 182, 178], 8: [185, 184, 186]}
    steps = [
        Step(
            {"mix": mix, "concurrency": level, "repetition": repetition},
            [counts[repetition - 1]] * 40,
            [2.0] * 40,
        )
        for repetition in (1, 2, 3)
        for mix in ("SELECT", "TPCB")
        for level, counts in levels.items()
    ]
    tables = sim_study(
        throughput(mixes=["SELECT", "TPCB"], concurrency=[2, 4, 8], duration="4s", repetitions=3)
    )
    run = write_run(tmp_path / "run", tables, steps)
    text = printed(call("report", run))
    check_golden("report-sweep", text, run=run)
    # Again the same, of a link as well.
    (tmp_path / "latest").symlink_to("run")
    assert printed(call("report", tmp_path / "latest")) == text


def test_golden_report_of_a_course_of_load(tmp_path: Path) -> None:
    tables = sim_study(phases({"concurrency": 4, "duration": "4s"}), system={"resources": None})
    del tables["system"]["resources"]
    run = write_run(
        tmp_path / "run",
        tables,
        [
            Step(
                {"mix": "SELECT", "concurrency": 4},
                [100 + n for n in range(40)],
                [2.0 + n / 100 for n in range(40)],
            )
        ],
    )
    check_golden("report-load", printed(call("report", run)), run=run)


def test_golden_comparison(tmp_path: Path) -> None:
    tables = sim_study(throughput(duration="1s", repetitions=3))
    for name, counts in (("baseline", [100, 102, 98]), ("candidate", [150, 151, 149])):
        labels = {"mix": "SELECT", "concurrency": 2}
        steps = [
            Step({**labels, "repetition": number}, [count] * 10, [2.0] * 10)
            for number, count in enumerate(counts, 1)
        ]
        write_run(tmp_path / name, tables, steps, {"host": {"name": name}})
    check_golden("compare", printed(call("compare", tmp_path / "baseline", tmp_path / "candidate")))


def test_a_run_tells_what_it_does(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(throughput(concurrency=[2, 4], duration="500ms", repetitions=2)))
    out = printed(call("run", study, "--out", tmp_path / "runs"))
    folder = (tmp_path / "runs" / "latest").resolve()
    lines = out.splitlines()
    assert lines[0] == "system: url"
    assert lines[1] == f"run: {folder} (about 3 s)"
    told = [line.split(" s  ")[1] for line in lines[2:10]]
    assert told == ["SELECT c=2 warm-up", "SELECT c=2", "SELECT c=4 warm-up", "SELECT c=4"] * 2
    assert lines[11] == "P-Score: TPS per $/min, at $0.0292 a minute"
    assert lines[12].split() == ["mix", "sessions", "TPS", "p50", "p99", "P"]
    assert lines[-1] == f"report: {folder}/report.html"
    assert re.search(
        r"^✓ every transaction is accounted for: [\d,]+ started, and as many ended or in flight$",
        out,
        re.MULTILINE,
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl",
        "histograms",
        "intervals.parquet",
        "manifest.json",
        "report.html",
        "scores.json",
        "study.toml",
        "system.parquet",
    ]


def test_a_run_tells_machines_line_by_line(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study(throughput(duration="500ms")))
    events = [
        json.loads(line) for line in printed(call("run", study, "--out", tmp_path, "--json")).splitlines()
    ]
    assert [event["event"] for event in events[:3]] == ["message", "begin", "phase"]
    assert {event["event"] for event in events[3:-1]} == {"phase", "interval"}
    end = events[-1]
    assert set(end) == {"event", "run", "status", "reason", "scores"}
    assert (end["event"], end["status"], end["reason"]) == ("end", "measured", None)
    assert set(end["scores"]["P"]) >= {"value", "unit", "ci95", "repetitions", "detail"}
    stored = json.loads((Path(end["run"]) / "scores.json").read_text())
    assert end["scores"] == stored["scores"]
    assert set(stored["absent"]) == {"E1", "R", "F", "E2", "C", "T", "O"}
    for event in events:
        if event["event"] == "interval":
            assert set(event) == {"event", "time_s", "phase", "tps", "p99_ms", "failed", "cpu_busy"}


def test_a_system_that_refuses_connections_fails_the_measurement(tmp_path: Path) -> None:
    tables = sim_study(throughput(), system={"rw": "postgresql://u:geheim@127.0.0.1:9/db"})
    ended = call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    assert (ended.code, ended.out) == (1, "system: url\n")
    assert ended.err.startswith("nephoscope: postgresql://u@127.0.0.1:9/db")
    assert ended.err.endswith("Connection refused (os error 111)\n")
    assert not (tmp_path / "runs").exists()


def test_a_system_that_goes_away_leaves_what_was_measured(tmp_path: Path) -> None:
    planted = "latency=constant(2ms)&failure=0s%2B60s:other"
    study = write_study(tmp_path, sim_study(throughput(duration="500ms"), planted=planted))
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 0
    assert "! transactions failed: " in ended.out
    assert "error (other) in select_only: planted other error" in ended.out


# --- data and calibration


def test_a_driver_that_stores_nothing_has_nothing_to_load_or_check(tmp_path: Path) -> None:
    study = write_study(tmp_path, sim_study())
    assert printed(call("load", study)) == "tpcb: this driver stores nothing; there is nothing to load\n"
    assert printed(call("check", study)) == "tpcb: there is nothing to check\n"
    assert printed(call("check", study, "--json")) == "[]\n"


def test_golden_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("load", "capacity", lambda _: ())
    tps = Reading(figure="TPS", unit="1/s", planted=200.0, read=203.0, relative=0.03, stated=1.25)
    f = Reading(figure="F", unit="s", planted=0.2, read=0.3, absolute=0.015)
    word = Reading(figure="F", unit="s", planted="none", read="none")
    lost = Reading(figure="commits lost", planted=37, read=37)
    good = Result(case, (tps, word, lost))
    bad = Result(case, (f,), attempts=2)
    not_run = Result(case, not_run="there is no PostgreSQL here")

    def result_in(results: list[Result]) -> None:
        monkeypatch.setattr(
            calibration, "calibrate", lambda cases, tell, **_: [tell(f"{cases[0]} …")] and results
        )

    result_in([good, bad, not_run])
    shown = call("calibrate", "load")
    assert shown.code == 1
    assert shown.err == (
        "nephoscope: 1 case: what was planted was not read; is the machine busy?; "
        "1 case could not be run, which is no pass\n"
    )
    check_golden("calibrate", shown.out)
    told = call("calibrate", "--json")
    assert (told.code, [result["holds"] for result in json.loads(told.out)]) == (1, [True, False, False])
    result_in([good])
    assert call("calibrate", "--short").code == 0


# --- wrong commands


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["run"], "a study is missing, or another tool's file by one of --pgbench, --sql, --sysbench, --ycsb"),
        (["load", "quickstart", "--sysbench", "x.lua", "--tables=4"],
         "No such option: --sysbench (Possible options: --pgbench, --ycsb)"),
        (["run", "quickstart", "--nonsense"], "No such option: --nonsense"),
        (["run", "quickstart", "--set"], "Option '--set' requires an argument."),
        (["compare", "one"], "Missing argument 'candidate'."),
        (["workloads", "none"],
         "workload.name: 'none' is no workload and no folder with a workload.lua; workloads are "
         + ", ".join(packaged_workloads())),
        (["report", "no/run"], "no/run is no run directory: manifest.json: No such file or directory"),
        (["calibrate", "scaleup"],
         ("calibrate: 'scaleup' has no cases; allowed are load, throughput, lag, consistency, isolation, failover,"
           " availability, elasticity, tenancy, scaleout, sweep, slo, metastability")),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)  # fmt: skip
def test_a_wrong_command_is_one_message(arguments: list[str], message: str) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.out, ended.err) == (2, "", f"nephoscope: {message}\n")


def test_processors_that_cannot_be_had_are_refused() -> None:
    ended = call("run", "quickstart", "--set", "load.cpus=[1023]")
    allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    message = f"nephoscope: load.cpus: this process may not use processor 1023; allowed are {allowed}\n"
    assert (ended.code, ended.out, ended.err) == (2, "", message)


def test_no_command_is_answered_with_help() -> None:
    ended = call()
    assert (ended.code, ended.err) == (2, "")
    assert [command for command in COMMANDS if command not in ended.out] == []
    for command in COMMANDS:
        assert "Usage: nephoscope" in printed(call(command, "--help"))


def test_help_says_what_stands_there() -> None:
    assert "one [[system]] or more" in " ".join(printed(call("score", "--help")).split())
    # Help is markup: what is not escaped there is taken for a style, and lost.
    app = typer.main.get_command(cli.app)
    assert isinstance(app, typer.core.TyperGroup)
    for command in (app, *app.commands.values()):
        for text in (command.help, *(getattr(one, "help", None) for one in command.params)):
            assert Text.from_markup(text or "").plain == (text or "").replace("\\[", "[")
