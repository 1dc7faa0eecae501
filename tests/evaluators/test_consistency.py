"""Consistency: what is read from a stored run is what was planted in it, and whole studies run on real databases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab
from product_labs import lab_without_database

from commands import call
from nephoscope.evaluators.consistency.tables import TABLES
from nephoscope.measuring.measurement import write_results
from nephoscope.store import FILES, StoredRun
from nephoscope.tables.columns import RunFigures
from sample_studies import sim_study, write_study
from stored_runs import Step, begin_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLICE_S = 0.5
SLICES = 8
MEASURE = {"evaluator": "consistency", "duration": "4s", "warmup": "0s", "write_interval": "1s"}


def count(at: int, check: str, trials: int, hits: int, place: float | None = None) -> str:
    """Make a row of ``checks.parquet`` as the engine gives it."""
    node = None if check in ("long_fork", "retired") else "ro"
    row = {"start_s": at * SLICE_S, "end_s": (at + 1) * SLICE_S, "check": check, "node": node}
    return json.dumps(row | {"place": place, "trials": trials, "hits": hits}) + "\n"


def write(number: int, time_s: float, bounds: tuple[float | None, float | None], outcome: str = "ok") -> str:
    """Make a row of ``probes.parquet``."""
    node = "rw" if bounds[0] is None else "ro"
    row = {"time_s": time_s, "probe": "consistency", "kind": "register", "role": node, "node": node}
    row |= {"number": number, "sent_s": time_s, "end_s": time_s + 0.1, "outcome": outcome}
    return json.dumps(row | {"lower_ms": bounds[0], "upper_ms": bounds[1], "polls": 3}) + "\n"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a run of four seconds: in each half second as much is checked, and in one of them something is broken."""
    folder = tmp_path_factory.mktemp("planted") / "run"
    labels = {"mix": "SELECT", "concurrency": 1, "load": "idle", "level": "default"}
    intervals = round(SLICES * SLICE_S / 0.1)
    writer = begin_run(
        folder, sim_study(MEASURE), [Step(labels, [1] * intervals, [1.0] * intervals)], probed=False
    )
    for at in range(SLICES + 2):
        # What is beyond the phase belongs to none.
        broken = 100 if at >= SLICES else 4 if at == 2 else 0
        writer.checks(count(at, "reads", 110, 100) + count(at, "failed_reads", 3, 3))
        writer.checks(count(at, "stale", 10, 5 if at < 4 else 0, 1.0) + count(at, "stale", 90, 0, 10.0))
        writer.checks(count(at, "missed", 7, 7, 1.0) + count(at, "behind", 95, 95, 0.0))
        writer.checks(count(at, "behind", 5, 5, 1.0) + count(at, "monotonic_reads", 100, broken))
        writer.checks(count(at, "read_your_writes", 100, 0) + count(at, "long_fork", 2, at % 2))
    for number in range(20):
        writer.probes(write(number, 0.1 + number * 0.15, (number, number + 2.0)))
    writer.probes(write(20, 3.5, (50.0, None), "not_seen") + write(21, 3.6, (None, None), "deadlock"))
    writer.probes(write(22, 4.2, (900.0, 901.0)))
    writer.event(SLICES * SLICE_S, "end", status="measured", reason=None)
    totals = dict.fromkeys(("started", "committed"), intervals)
    writer.finish("measured", None, totals | dict.fromkeys(("aborted", "failed", "in_flight", "dropped"), 0))
    write_results(folder)
    return folder


def situations(folder: Path) -> list[dict[str, Any]]:
    scores = StoredRun(folder).scores
    assert scores is not None
    found: list[dict[str, Any]] = scores["details"]["consistency"]["0"]["situations"]
    return found


def situation(folder: Path) -> dict[str, Any]:
    return situations(folder)[0]


def test_counts_are_added_up_over_the_phase_alone(planted: Path) -> None:
    found = situation(planted)
    assert (found["load"], found["level"]) == ("idle", "default")
    assert found["reads"] == {"due": 880, "answered": 800, "failed": 24, "missed": 56}
    assert (found["stale"]["hits"], found["stale"]["trials"]) == (20, 800)
    assert found["behind"] == [{"versions": 0, "reads": 760}, {"versions": 1, "reads": 40}]
    first, second = found["curve"]
    assert (first["after_ms"], first["reads"], first["stale"], first["missed"]) == (1.0, 80, 20, 56)
    assert (first["share"], first["at_most"]) == (0.25, 76 / 136)
    # Half of the slices are half stale: eight clusters, and not eighty reads.
    assert first["ci95"][1] - first["ci95"][0] > 0.3
    assert second["ci95"][0] == 0
    assert 0.2 < second["ci95"][1] < 0.4


def test_violations_have_the_interval_of_independent_checks(planted: Path) -> None:
    guarantees = situation(planted)["guarantees"]
    assert set(guarantees) == {"monotonic_reads", "read_your_writes", "long_fork"}, "others were not checked"
    assert (guarantees["monotonic_reads"]["violations"], guarantees["monotonic_reads"]["checks"]) == (4, 800)
    assert guarantees["read_your_writes"]["ci95"] == pytest.approx((0, 0.00478), abs=1e-4)
    assert guarantees["monotonic_reads"]["ci95"][1] > 0.0128, "all four are of one slice"
    assert (guarantees["long_fork"]["violations"], guarantees["long_fork"]["checks"]) == (4, 16)


def test_times_until_writes_are_visible_are_between_their_bounds(planted: Path) -> None:
    found = situation(planted)
    assert found["writes"] == {"acknowledged": 21, "failed": {"deadlock": 1}}
    (visible,) = found["visible"]
    assert (visible["node"], visible["count"], visible["unseen"]) == (None, 21, 1)
    # The middles are 1 to 20 ms, and one is at least 50.
    assert (visible["p50_ms"], visible["max_ms"], visible["half_width_ms"]) == (11.0, 50.0, 1.0)
    assert visible["mean_ms"] == pytest.approx((210 + 50) / 21)
    assert [visible["seen"][0], visible["seen"][-1]] == [
        [1.0, pytest.approx(1 / 21)],
        [20.0, pytest.approx(20 / 21)],
    ]


FAILURE = {"measure": 0, "repetition": 1, "load": "idle", "level": "default", "failure": 0, "node": "node2"}
PAUSE = {"fault": "pause", "targets": "ro", "script": [{"at": "1200ms", "for": "1s"}]}


def test_each_slice_and_each_write_belongs_to_one_part_of_the_time_of_a_failure(tmp_path: Path) -> None:
    """A pause from 1.2 to 2.3 s: the third to the fifth of eight slices."""
    labels = {"mix": "SELECT", "concurrency": 1, "load": "idle", "level": "default"}
    intervals = round(SLICES * SLICE_S / 0.1)
    folder = tmp_path / "run"
    steps = [Step(labels, [1] * intervals, [1.0] * intervals)]
    writer = begin_run(folder, sim_study({**MEASURE, **PAUSE}), steps, probed=False)
    for at in range(SLICES):
        paused = 2 <= at <= 4
        writer.checks(count(at, "reads", 100, 10 if paused else 100))
        writer.checks(count(at, "failed_reads", 5, 5) if paused else "")
        writer.checks(count(at, "stale", 10 if paused else 100, 9 if paused else 0, 10.0))
        writer.checks(count(at, "missed", 85, 85, 10.0) if paused else "")
        writer.checks(count(at, "monotonic_reads", 100, 1 if at == 5 else 0))
    for number, time_s in enumerate((0.3, 1.0, 1.3, 2.2, 2.4)):
        writer.probes(write(number, time_s, (900.0, 902.0) if 1.2 <= time_s < 2.3 else (1.0, 3.0)))
    writer.event(1.2, "fault", **FAILURE, fault="pause", target="ro", action="pause", took_s=0.001)
    writer.event(2.2, "action", **FAILURE, fault="pause", target="ro", action="resume", took_s=0.1)
    writer.event(SLICES * SLICE_S, "end", status="measured", reason=None)
    totals = dict.fromkeys(("started", "committed"), intervals)
    writer.finish("measured", None, totals | dict.fromkeys(("aborted", "failed", "in_flight", "dropped"), 0))
    write_results(folder)
    before, during, after = situations(folder)
    assert [one["when"] for one in (before, during, after)] == ["before", "during", "after"]
    assert [one["reads"]["due"] for one in (before, during, after)] == [200, 300, 300]
    assert during["reads"] == {"due": 300, "answered": 30, "failed": 15, "missed": 255}
    assert [one["stale"]["hits"] for one in (before, during, after)] == [0, 27, 0]
    (of,) = during["curve"]
    assert (of["missed"], of["at_most"]) == (255, (27 + 255) / (30 + 255)), (
        "what was not sent may be stale, too"
    )
    assert [one["guarantees"]["monotonic_reads"]["violations"] for one in (before, during, after)] == [
        0,
        0,
        1,
    ]
    assert [one["writes"]["acknowledged"] for one in (before, during, after)] == [2, 2, 1]
    assert [one["visible"][0]["p50_ms"] for one in (before, during, after)] == [2.0, 901.0, 2.0]
    run = StoredRun(folder)
    assert run.scores is not None
    assert any(
        told.startswith("consistency, idle, during failures: 90.0%") for told in run.scores["warnings"]
    )
    table = TABLES[0]([RunFigures("run", run, run.scores)])
    assert [row["when"] for row in table.rows] == ["before", "during", "after"]
    assert "during failures: 90 % of 30 reads were stale" in (folder / FILES.report).read_text()


def test_what_is_not_of_every_read_and_write_is_told(planted: Path) -> None:
    scores = StoredRun(planted).scores
    assert scores is not None
    told = "\n".join(scores["warnings"])
    assert "9.1% of the reads that were due were not answered (56 missed, 24 failed)" in told
    assert "writes that were not acknowledged (1 deadlock)" in told
    assert "1 writes were not seen for as long as they were looked for" in told
    assert "violations of monotonic reads" in told
    assert "4 long forks" in told


def test_the_tables_and_the_report_have_them(planted: Path) -> None:
    run = StoredRun(planted)
    figures = RunFigures("run", run, run.scores or {})
    guarantees, visibility, staleness, behind = (make([figures]) for make in TABLES)
    assert [row["guarantee"] for row in guarantees.rows] == [
        "monotonic reads",
        "read your writes",
        "long fork",
    ]
    assert (len(visibility.rows), len(staleness.rows), len(behind.rows)) == (1, 2, 2)
    assert guarantees.cells[1][-1] == "0 (0.00 … 0.48) %"
    page = (planted / FILES.report).read_text()
    assert 'id="consistency"' in page
    assert (
        "2.50 % of 800 reads were stale; violated: monotonic reads (4 of 800), long fork (4 of 16)." in page
    )
    assert "consistency-stale" in page


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"writers": 3, "keys": 2}, "keys is 2; each of the 3 writers needs a key of its own"),
        (
            {"write_interval": "1ms", "limit": "20s"},
            "write_interval is 0.001 s; with a limit of 20 s it must be",
        ),
        ({"levels": ["quorum"]}, "measure.0.levels: none has no 'quorum'; it has only its default"),
        ({"loads": [{"name": "a"}, {"name": "a"}]}, "loads: each may be there once"),
        ({"duration": "0s"}, "duration and action_limit must be above 0"),
        ({"fault": "pause", "script": [{"at": "1s"}]}, "script.0.for is missing: how long the pause lasts"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_touched(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    study = write_study(tmp_path, sim_study({**MEASURE, **settings}))
    ended = call("run", str(study), "--out", str(tmp_path / "runs"))
    assert (ended.code, message in ended.err) == (2, True), ended.err
    assert not (tmp_path / "runs").exists()


def brief(*words: str) -> list[str]:
    """Set keys of a shipped study's one measurement, so that it takes seconds."""
    pairs = {"warmup": "200ms", "duration": "3s", "loads": '[{name="idle"}]'} | dict(
        word.split("=", 1) for word in words
    )
    return [word for key, value in pairs.items() for word in ("--set", f"measure.0.{key}={value}")]


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The studies have no folder of their own, and the user's may hold other data."""
    yield from lab_without_database(Lab, monkeypatch)


@pytest.mark.alone
@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("product", ["postgres", "mariadb"])
def test_the_study_of_stale_reads_runs_on_a_real_replica(tmp_path: Path, product: str) -> None:
    ended = call(
        "run",
        "consistency",
        "--out",
        str(tmp_path),
        *("--set", f"system.provider=embedded-{product}", "--set", "system.replicas=1"),
        *("--set", "workload.scale=0.002"),
        *brief("write_interval=100ms", "readers=3", "read_interval=5ms", "limit=2s"),
    )
    if "there is no" in ended.err and product == "mariadb":
        pytest.skip(ended.err)
    assert ended.code == 0, ended.out + ended.err
    found = situation(tmp_path / "latest")
    assert found["writes"]["acknowledged"] > 15, found["writes"]
    assert found["visible"][0]["unseen"] <= 1, "it is a replica that follows"
    # A session that always reads the same node never goes back, whatever the replica lags.
    for guarantee in ("monotonic_reads", "monotonic_writes", "writes_follow_reads"):
        of = found["guarantees"][guarantee]
        assert of["checks"] > 100, (guarantee, of)
        assert of["violations"] == 0, (guarantee, of)
    reads = found["reads"]
    assert reads["due"] == reads["answered"] + reads["missed"] + reads["failed"]
    assert reads["failed"] == 0


@pytest.mark.alone
@pytest.mark.usefixtures("empty_cache")
def test_the_study_of_long_forks_runs_on_a_primary_and_its_replica(tmp_path: Path) -> None:
    ended = call(
        "run",
        "long-fork",
        "--out",
        str(tmp_path),
        *("--set", "workload.scale=0.002"),
        *brief("readers=2", "write_interval=20ms"),
    )
    assert ended.code == 0, ended.out + ended.err
    found = situation(tmp_path / "latest")
    assert found["writes"]["acknowledged"] > 50
    assert found["guarantees"]["monotonic_reads"]["violations"] == 0
    assert "long fork" in ended.out


@pytest.mark.alone
@pytest.mark.usefixtures("empty_cache")
def test_what_a_replica_that_stands_still_shows_is_told_apart(tmp_path: Path) -> None:
    """The replica is paused for two seconds: writes of that time are seen when it goes on, and reads of it wait."""
    ended = call(
        *("run", "consistency", "--out", str(tmp_path)),
        *("--set", "system.replicas=1", "--set", "workload.scale=0.002"),
        *brief("duration=6s", "write_interval=50ms", "readers=3", "read_interval=5ms", "read_timeout=500ms"),
        *("--set", "measure.0.fault=pause", "--set", "measure.0.targets=ro"),
        *("--set", 'measure.0.script=[{at="2s",for="2s"}]'),
    )
    assert ended.code == 0, ended.out + ended.err
    before, during, after = situations(tmp_path / "latest")
    assert [one["when"] for one in (before, during, after)] == ["before", "during", "after"]
    # The slices of half a second that begin or end in the pause belong to it.
    for one, least_s, most_s in ((before, 1.0, 2.0), (during, 2.0, 3.5), (after, 1.0, 2.0)):
        reads = one["reads"]
        assert reads["due"] == reads["answered"] + reads["missed"] + reads["failed"]
        assert 4 * 200 * (least_s - 0.1) <= reads["due"] <= 4 * 200 * (most_s + 0.5), one["when"]
    assert during["reads"]["missed"] + during["reads"]["failed"] > 0.4 * during["reads"]["due"]
    # Halfway through the pause a write still has a second to wait. No read tells when within that time it was there.
    assert during["visible"][0]["p50_ms"] + during["visible"][0]["half_width_ms"] > 700
    assert before["visible"][0]["p50_ms"] < 200 > after["visible"][0]["p50_ms"]
    for one in (before, during, after):
        assert one["guarantees"]["monotonic_reads"]["violations"] == 0, (
            "it stands still, and does not go back"
        )
    assert "during" in ended.out
