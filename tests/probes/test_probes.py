"""Probes from Python: what is planted is found in the stored run, and acknowledged writes are looked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from databases import query, running_server
from nephoscope import _engine
from nephoscope.engine.probes import Endpoint, Probes, ProbeSettings, set_up
from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.load.evaluator import LoadEvaluator
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.silence import Silence
from nephoscope.store import FILES, RunWriter, StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.base import System
from sample_studies import phases, sim_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from databases import Server
    from nephoscope.evaluators.base import Means

pytestmark = pytest.mark.alone

PATIENCE_S = 60.0
QUICK = "latency=constant(200us)"


def endpoints(rw: str, *ro: str) -> tuple[Endpoint, ...]:
    return Endpoint.of(System(rw=(rw,), ro=ro))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    writer = RunWriter(tmp_path, {}, "")
    yield writer
    writer.close()


class Until:
    """Watches probes until something has been seen."""

    def __init__(self, seen: Callable[[list[Mapping[str, Any]]], bool]) -> None:
        self._seen = seen
        self._rows: list[Mapping[str, Any]] = []
        self._event = threading.Event()

    def __call__(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if self._seen(self._rows):
            self._event.set()

    def wait(self) -> None:
        assert self._event.wait(PATIENCE_S), f"{len(self._rows)} samples, and not what was waited for"


def so_many(number: int, **wanted: Any) -> Until:
    def seen(rows: list[Mapping[str, Any]]) -> bool:
        return sum(all(row[key] == value for key, value in wanted.items()) for row in rows) >= number

    return Until(seen)


# --- the simulated database


def test_samples_are_stored_as_they_come_and_read_back(tmp_path: Path, writer: RunWriter) -> None:
    name = f"sim://{tmp_path.name}?{QUICK}"
    both = endpoints(name, f"{name}&lag=constant(20ms)")
    enough = so_many(9, probe="lag", outcome="ok")
    origin = _engine.monotonic_ns()
    with Probes(both, writer, origin, ProbeSettings(rate=100), lag=True, watch=enough) as probes:
        enough.wait()
        probes.stop()
        during = StoredRun(tmp_path).probes
    writer.finish("measured", None)
    stored = StoredRun(tmp_path).probes
    assert stored.equals(during)
    assert (tmp_path / FILES.probes).exists()
    rows = stored.to_pylist()
    assert sum(probes.outcomes.values()) == len(rows)
    assert {(row["node"], row["role"], row["kind"]) for row in rows if row["probe"] == "availability"} == {
        ("rw", "rw", "write"),
        ("ro", "ro", "read"),
    }
    seen = [row for row in rows if row["probe"] == "lag" and row["outcome"] == "ok"]
    assert {row["kind"] for row in seen} == {"insert", "update", "delete"}
    for row in seen:
        assert row["lower_ms"] <= row["upper_ms"]
        # A busy machine asks late, so the upper bound may be far; the lower one never lies.
        assert row["lower_ms"] <= 20.0 <= row["upper_ms"] + 1.0
        assert 0 < row["sent_s"] <= row["time_s"] <= row["end_s"] < PATIENCE_S
    numbers = sorted(row["number"] for row in rows if row["kind"] == "write")
    assert numbers == list(range(len(numbers)))
    acknowledged = {row["number"] for row in rows if row["kind"] == "write" and row["outcome"] == "ok"}
    assert probes.acknowledged() == {"rw": acknowledged}


def test_the_writes_of_the_simulated_database_are_looked_for(tmp_path: Path, writer: RunWriter) -> None:
    both = endpoints(f"sim://{tmp_path.name}?{QUICK}&reply_lost=0.2&seed=5")
    enough = so_many(40, outcome="ok")
    with Probes(both, writer, _engine.monotonic_ns(), ProbeSettings(), watch=enough) as probes:
        enough.wait()
        probes.stop()
        found = probes.durability(both[0].url)
    # What was written and never answered is there, and nobody was told so.
    assert (found.acknowledged, found.lost) == (len(probes.acknowledged()["rw"]), ())
    unheard = probes.outcomes["rw", "write", "connection_lost"]
    assert 0 < len(found.indeterminate) <= unheard


def test_an_evaluator_has_probes_on_the_clock_of_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = LoadEvaluator.drive

    def probed(self: LoadEvaluator, means: Means) -> None:
        wait = means.load.wait

        def wait_with_probes() -> None:
            with means.probes(ProbeSettings(rate=100), lag=True):
                wait()

        monkeypatch.setattr(means.load, "wait", wait_with_probes)
        drive(self, means)

    monkeypatch.setattr(LoadEvaluator, "drive", probed)
    name = f"sim://{tmp_path.name}?{QUICK}"
    study = sim_study(
        phases({"concurrency": 1, "duration": "1500ms"}),
        system={"rw": name, "ro": f"{name}&lag=constant(1ms)"},
    )
    outcome = run_study(make_study(study, "probed"), tmp_path / "runs", Silence())
    assert (outcome.status, outcome.reason) == ("measured", None)
    run = StoredRun(outcome.folder)
    times = [row["time_s"] for row in run.probes.to_pylist()]
    assert 0 < min(times) < 1.0
    assert set(run.probes.column("node").to_pylist()) == {"rw", "ro"}
    assert set(run.probes.column("probe").to_pylist()) == {"availability", "lag"}


def test_a_replica_of_something_else_is_refused_in_time(tmp_path: Path) -> None:
    strangers = endpoints(f"sim://{tmp_path.name}?{QUICK}", f"sim://{tmp_path.name}-other?lag=constant(1ms)")
    with pytest.raises(MeasurementError, match=r"probes of ro: the tables of probes, made on rw, were not"):
        set_up(strangers, 0.3)


def test_what_cannot_be_probed_is_told(tmp_path: Path, writer: RunWriter) -> None:
    alone = endpoints(f"sim://{tmp_path.name}?{QUICK}")
    with (
        pytest.raises(
            InputError, match=r"probes\.lag needs an endpoint that takes writes and a read-only one"
        ),
        Probes(alone, writer, 0, ProbeSettings(), lag=True),
    ):
        pass
    with pytest.raises(MeasurementError, match="probes need an endpoint that takes writes"):
        set_up((), 1.0)


def test_probes_whose_samples_cannot_be_written_say_so_at_their_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    writer = RunWriter(folder, {}, "")
    (folder / FILES.probe_journal).mkdir()
    alone = endpoints(f"sim://{tmp_path.name}?{QUICK}")
    probes = Probes(alone, writer, 0, ProbeSettings(timeout=0.1))
    with pytest.raises(MeasurementError, match=r"probes\.jsonl cannot be written: Is a directory"), probes:
        probes._thread.join(PATIENCE_S) if probes._thread else None
    writer.close()


# --- PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def test_what_was_acknowledged_and_lost_is_found_to_the_number(writer: RunWriter, server: Server) -> None:
    url = server.new_database()
    one = endpoints(url)
    enough = so_many(60, outcome="ok")
    with Probes(one, writer, _engine.monotonic_ns(), ProbeSettings(), watch=enough) as probes:
        enough.wait()
        probes.stop()
        whole = probes.durability(url)
        acknowledged = sorted(probes.acknowledged()["rw"])
        lost = acknowledged[10:47]
        query(url, f"DELETE FROM nephoscope_probe_write WHERE number BETWEEN {lost[0]} AND {lost[-1]}")
        query(url, "INSERT INTO nephoscope_probe_write VALUES (0, 1000001), (0, 1000002)")
        damaged = probes.durability(url)
    assert (whole.acknowledged, whole.lost) == (len(acknowledged), ())
    assert damaged.acknowledged == len(acknowledged)
    assert damaged.lost == tuple(("rw", number) for number in lost)
    assert set(damaged.indeterminate) - set(whole.indeterminate) == {("rw", 1000001), ("rw", 1000002)}


def test_the_tables_are_there_while_probes_run_and_gone_afterwards(
    tmp_path: Path, writer: RunWriter, server: Server
) -> None:
    url = server.new_database()
    tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'nephoscope%' ORDER BY 1"
    # One server in both roles: its lag is what a look takes.
    both = endpoints(url, url)
    enough = so_many(6, probe="lag", outcome="ok")
    query(url, _engine.probe_tables(url)["create"])
    query(url, "INSERT INTO nephoscope_probe_write VALUES (0, 5)")
    with Probes(both, writer, _engine.monotonic_ns(), ProbeSettings(), lag=True, watch=enough) as probes:
        assert query(url, tables) == [["nephoscope_probe_marker"], ["nephoscope_probe_write"]]
        enough.wait()
        probes.stop()
        assert probes.durability(url).lost == (), "what others had left was emptied"
    assert query(url, tables) == []
    lags = [row for row in StoredRun(tmp_path).probes.to_pylist() if row["probe"] == "lag"]
    assert all(row["lower_ms"] == 0 or row["polls"] > 1 for row in lags if row["outcome"] == "ok")
