"""Duets as they are run: paired by time, on planted systems and a real one, interrupted, failing, wrong."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from commands import call, finish, start, wait_for
from nephoscope.errors import InputError
from nephoscope.measuring.duet import FILES
from nephoscope.results.answers import EXIT_CODES
from nephoscope.results.duets import ONE_RUN, SAME_SYSTEM, compare_duet
from nephoscope.store import FILES as OF_RUN
from nephoscope.store import StoredRun
from planted_runs import study as planted_study
from sample_studies import phases, sim_study, throughput, write_study
from stored_runs import INTERVAL_S, Step, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from postgres_lab import Lab

COURSE = [100 + 10 * (at % 7) for at in range(40)]
"""What the machine lets both systems do in each interval."""


def side(
    folder: Path, counts: list[int], *, later: int = 0, repetitions: int = 1, latency_ms: float = 2.0
) -> StoredRun:
    """Plant a run that has begun some intervals after the day's clock says 3 o'clock."""
    steps = [
        Step({"mix": "SELECT", "concurrency": 2, "repetition": at + 1}, counts, [latency_ms] * len(counts))
        for at in range(repetitions)
    ]
    manifest = {
        "clock": {"origin": f"2026-01-02T03:00:{later * INTERVAL_S:06.3f}+00:00"},
        "load": {"threads": 1, "statement_mode": "prepared", "pipeline": False, "interval_s": INTERVAL_S},
    }
    return StoredRun(write_run(folder, planted_study(repetitions), steps, manifest))


def test_intervals_are_paired_by_their_time_and_not_by_their_place(tmp_path: Path) -> None:
    ours = side(tmp_path / "a", COURSE)
    late = side(tmp_path / "b", COURSE[3:] + COURSE[:3], later=3)
    found = compare_duet([(ours, late)])
    (repetition,) = found.points[0].repetitions
    assert len(repetition.starts_s) == len(COURSE) - 3
    assert repetition.pair.ratios() == pytest.approx([1.0] * len(repetition.starts_s))
    assert [figure.name for figure in found.compared.figures] == ["SELECT c=2 TPS"]
    assert found.compared.figures[0].comparison.relative == pytest.approx(0.0)
    assert found.compared.notes[-1:] == [ONE_RUN]
    # An interval that another one cuts is shared by time.
    half = side(tmp_path / "half", [100] * 40)
    half.manifest["clock"]["origin"] = "2026-01-02T03:00:00.050+00:00"
    steady = compare_duet([(side(tmp_path / "steady", [200] * 40), half)], same=True)
    assert steady.points[0].repetitions[0].pair.ratios() == pytest.approx([0.5] * 39)
    assert steady.compared.notes == [ONE_RUN, SAME_SYSTEM]  # of constants there is no spread to narrow


def test_what_one_side_lacks_is_told(tmp_path: Path) -> None:
    ours, theirs = side(tmp_path / "a", COURSE, repetitions=2), side(tmp_path / "b", COURSE)
    assert compare_duet([(ours, theirs)]).compared.lacking == ["only in the baseline: SELECT c=2"]
    tomorrow = side(tmp_path / "c", COURSE, later=500)
    with pytest.raises(InputError, match="no point was measured to its end on both systems at the same time"):
        compare_duet([(ours, tomorrow)])
    # Several runs: each is a value.
    several = compare_duet([(ours, theirs), (ours, theirs)]).compared
    assert several.figures[0].comparison.repetitions == (2, 2)
    assert ONE_RUN not in several.notes


def planted(latency: str, **measured: Any) -> dict[str, Any]:
    """A system whose speed changes in each second, as a shared machine's does."""
    query = f"latency=lognormal({latency},0.3)&capacity=4,1s:6,2s:3,3s:5,4s:2"
    return sim_study(
        throughput(concurrency=[8], warmup="300ms", duration="1500ms", repetitions=2, **measured),
        planted=query,
        load={"interval": "50ms"},
    )


@pytest.mark.alone
def test_a_planted_loss_is_found_on_a_machine_that_drifts(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, planted("4ms")), tmp_path / "out"
    slow = planted("6ms")["system"]["rw"]
    words = ("duet", study, "--out", out, "--with", f"system.rw={slow}&seed=2", "--json")
    ended = call(*words, "--junit", tmp_path / "junit.xml")
    assert ended.code == EXIT_CODES["slower"], ended.err + ended.out
    told = json.loads(ended.out)
    assert told["answer"] == "slower"
    low, high = told["figures"][0]["relative_ci95"]
    assert low < 4 / 6 - 1 < high
    assert "failures=" in (tmp_path / "junit.xml").read_text()
    kept = json.loads((out / FILES.result).read_text())
    assert (kept["reason"], kept["answer"], kept["figures"]) == (None, "slower", told["figures"])
    assert [len(kept[of]["runs"]) for of in ("baseline", "candidate")] == [1, 1]
    assert "lognormal(6ms,0.3)" in kept["candidate"]["study"]
    repetitions = kept["series"][0]["repetitions"]
    assert [one["repetition"] for one in repetitions] == [1, 2]
    assert all(len(one["ratio"]) >= 28 for one in repetitions)
    # Both sides are ordinary runs.
    assert call("compare", out / FILES.a, out / FILES.b, "--figure", "TPS").code == 0
    assert call("report", out / FILES.b / "latest").code == 0
    again = call(*words)
    assert (again.code, "holds a duet" in again.err) == (2, True)


@pytest.mark.alone
def test_the_same_postgres_twice_is_measured_at_the_same_time(lab: Lab, tmp_path: Path) -> None:
    tables = planted("1ms")
    tables["system"] = {"provider": "embedded-postgres", "data": str(lab.folder)}
    tables["workload"] = {"name": "sales", "scale": 0.01}
    measure = {"duration": "1s", "rate": 200, "mix": "RO"}
    tables["measure"] = [phases({**measure, "kind": "warm_up"}, measure)]
    out = tmp_path / "out"
    ended = call("duet", write_study(tmp_path, tables), "--out", out, "--margin", "90%", "--json")
    # Its mean latency is what a busy machine makes of it: that is not judged here.
    assert ended.code in EXIT_CODES.values(), ended.err + ended.out
    told = json.loads(ended.out)
    assert [figure["name"] for figure in told["figures"]] == ["RO 200/s mean"]
    assert SAME_SYSTEM in told["notes"]
    ours, theirs = (StoredRun(out / name / "latest") for name in (FILES.a, FILES.b))
    ports = [run.manifest["system"]["endpoints"]["rw"] for run in (ours, theirs)]
    assert ports[0] != ports[1]
    assert lab.folder.with_name(f"{lab.folder.name}-b").is_dir()


@pytest.mark.survives(
    part="tool",
    fault="SIGINT in a duet",
    promise="both runs end whole and are kept, and no side outlives it; exit code 1",
    on="the simulated database",
)
def test_an_interrupted_duet_keeps_what_both_measured(tmp_path: Path) -> None:
    endless = sim_study(
        phases({"duration": "1s", "concurrency": 2}, {"duration": "600s"}), load={"interval": "50ms"}
    )
    out = tmp_path / "out"
    with start("duet", write_study(tmp_path, endless), "--out", out, cwd=tmp_path) as process:
        journals = [out / name / "latest" / OF_RUN.interval_journal for name in (FILES.a, FILES.b)]
        wait_for(
            lambda: all(path.exists() and path.read_text().count("\n") > 25 for path in journals),
            "both have measured",
            process,
        )
        process.send_signal(signal.SIGINT)
        ended = finish(process)
    assert (ended.code, ended.err.splitlines()[-1]) == (1, "nephoscope: interrupted by SIGINT")
    for name in (FILES.a, FILES.b):
        run = StoredRun(out / name / "latest")
        assert run.manifest["status"] == "interrupted"
        assert run.manifest["totals"]["committed"] == run.intervals.column("committed").to_numpy().sum()
    kept = json.loads((out / FILES.result).read_text())
    assert kept["reason"] == "interrupted by SIGINT"
    assert len(kept["series"][0]["repetitions"][0]["ratio"]) >= 18


def test_a_side_that_fails_ends_the_other_one(tmp_path: Path) -> None:
    gone = "system.rw=postgresql://me:hush@127.0.0.1:1/nowhere"
    study = write_study(tmp_path, planted("2ms"))
    ended = call("duet", study, "--out", tmp_path / "out", "--with", gone)
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("nephoscope: B: ")
    assert "Connection refused" in last
    assert "hush" not in ended.err + ended.out
    assert not (tmp_path / "out" / FILES.result).exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--with", "load.threads=2"), "--with load.threads=2: a duet compares systems under one load; allowed: "),
        (("--with", "system.rw"), "--with system.rw: expected key=value, such as system.version=16"),
        (("--with", "system.nothing=1"), "system.nothing: there is no such key"),
        (("--with", "load.on_connect=1"), "load.on_connect"),
        (("--margin", "5"), "--margin 5: expected a share"),
        (("--set", "measure.0.concurrency=search"), "measure.0: throughput decides by what it measures what comes"),
        (
            ("--url", "postgresql://me:hush@h/one", "--with", "system.ro=[]"),
            "system.rw: both systems are at postgresql://me:***@h/one; --with system.rw=URL names",
        ),
        (
            ("--url", "postgresql://me@h/one", "--with", "system.rw=postgresql://you@h/one?sslmode=disable"),
            "system.rw: both systems are at postgresql://you@h/one?sslmode=disable",
        ),
        (("--set", "workload.scales=[1,2]", "--set", 'workload.load="always"'), "a duet measures one scale factor"),
        (("--out", "/proc/nowhere"), "no run directory can be made in /proc/nowhere/a"),
    ],
)  # fmt: skip
def test_wrong_input_is_told_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("duet", write_study(tmp_path, planted("2ms")), *words)
    assert ended.code == 2, ended.err
    assert complaint in ended.err
    assert "hush" not in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]
