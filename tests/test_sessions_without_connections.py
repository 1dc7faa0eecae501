"""Sessions that have no connection: what does not count then, what is said of it, and what is known beforehand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from databases import query, running_server, study_of
from nephoscope.dialects import DIALECTS
from nephoscope.engine.sessions import PhaseRecord, is_short, of_threads
from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.demand import Room
from nephoscope.evaluators.search import SearchSettings, search
from nephoscope.measuring import room
from nephoscope.measuring.measurement import write_results
from nephoscope.measuring.preparing import prepare
from nephoscope.store import StoredRun
from nephoscope.study.packaged import find_study
from nephoscope.study.reading import make_study, read_study
from nephoscope.systems.base import System
from sample_studies import phases, sim_study, throughput, write_study
from stored_runs import Step, begin_run, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.dialects import Dialect

URL = "postgresql://reader@db.example/bench"
REFUSAL = f"{URL}: FATAL: sorry, too many clients already"


@pytest.mark.parametrize(
    ("disconnected", "failures", "short"),
    [
        ([0] * 100, 9, False),
        ([1] * 100, 40, True),  # one of a hundred, all the time
        ([1] * 51 + [0] * 49, 0, True),
        ([1] * 49 + [0] * 51, 40, False),
        ([100] * 5 + [0] * 95, 0, False),  # connecting as the phase begins
        ([0] * 40 + [100] * 3 + [0] * 57, 300, True),  # a restart
        ([0] * 40 + [100] + [0] * 59, 100, False),  # seen once, at the end of one interval
        ([0] * 20 + [100] * 80, 1000, True),
    ],
)
def test_a_phase_is_short_of_sessions_by_their_time_without_a_connection(
    disconnected: list[int], failures: int, *, short: bool
) -> None:
    assert is_short([100] * 100, disconnected, failures) is short


def test_nobody_is_missed_where_nobody_is_wanted() -> None:
    assert not is_short([0] * 20, [0] * 20, 5)
    assert not is_short([], [], 0)


def step(concurrency: int, missing: int, **labels: Any) -> Step:
    labels = {"mix": "SELECT", "concurrency": concurrency, **labels}
    return Step(labels, [10 * (concurrency - missing)] * 40, [1.0] * 40, disconnected=[missing] * 40)


def refused_run(folder: Path, *steps: Step, **measure: Any) -> Mapping[str, Any]:
    """Write a run whose server says why it refuses, half a second before each phase of 4 s ends; give its scores."""
    study = sim_study(throughput(duration="4s", **measure))
    writer = begin_run(folder, study, steps)
    for number, one in enumerate(steps):
        if one.disconnected[0]:
            said = {"class": "connection_lost", "code": "53300", "transaction": "select_only", "role": "rw"}
            at = 4.0 * number + 3.5
            writer.event(at, "error", message=REFUSAL, tenant="default", count=30, **said)
            writer.event(at, "connection", state="refused", tenant="default", count=30)
    writer.event(4.0 * len(steps), "end", status="measured", reason=None)
    committed = sum(sum(one.committed) for one in steps)
    ends = dict.fromkeys(("aborted", "failed", "in_flight", "dropped"), 0)
    writer.finish("measured", None, {"started": committed, "committed": committed, **ends})
    return write_results(folder)


def test_what_rests_on_a_phase_without_its_sessions_is_absent_with_the_words_of_the_server(
    tmp_path: Path,
) -> None:
    steps = (step(4, 0), step(100, 61))
    scores = refused_run(tmp_path / "run", *steps, concurrency=[4, 100], repetitions=1)
    assert [point["concurrency"] for point in scores["points"]] == [4]
    words = f"SELECT c=100: 39 of 100 sessions were connected ({REFUSAL} [53300])"
    assert scores["absent"]["P"] == words
    (problem,) = [entry for entry in scores["verdicts"] if entry["level"] == "problem"]
    assert problem["verdict"] == "sessions were not connected"
    assert problem["detail"].startswith(words)
    assert not scores["saturation"]


def test_what_a_search_has_found_below_a_step_without_its_sessions_counts(tmp_path: Path) -> None:
    steps = (*(step(level, max(level - 39, 0), search=True) for level in (16, 32, 64)), step(32, 0))
    scores = refused_run(tmp_path / "run", *steps, concurrency="search", repetitions=1)
    found = scores["saturation"]["SELECT"]
    assert (found["concurrency"], found["why"]) == (
        32,
        "of 64 sessions not all were connected",
    )
    assert scores["scores"]["P"]["detail"]["mixes"]["SELECT"]["concurrency"] == 32
    assert any(entry["verdict"].startswith("a search ended") for entry in scores["verdicts"])


def test_a_run_of_before_says_nothing_of_sessions_and_counts(tmp_path: Path) -> None:
    steps = [Step({"mix": "SELECT", "concurrency": 4}, [40] * 40, [1.0] * 40)]
    scores = StoredRun(write_run(tmp_path / "run", sim_study(throughput(repetitions=1)), steps)).scores
    assert scores is not None
    assert (len(scores["points"]), scores["shortfalls"]) == (1, [])


def test_a_run_of_which_phases_do_not_count_fails(tmp_path: Path) -> None:
    levels = [{"concurrency": 4, "duration": "400ms"}, {"concurrency": 12, "duration": "600ms"}]
    study = sim_study(
        phases(*levels), planted="latency=constant(5ms)&connections=5", load={"interval": "50ms"}
    )
    ended = call("run", write_study(tmp_path, study), "--out", tmp_path / "runs")
    assert ended.code == 1
    assert re.search(
        r"✗ sessions were not connected: measure 2: [45][.\d]* of 12 sessions were connected", ended.out
    )
    assert "(planted limit of 5)" in ended.out
    assert ended.err == "nephoscope: 1 measured phase cannot count, as sessions were not connected\n"


# --- beforehand


def test_steps_that_do_not_fit_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    with running_server(max_connections=20, superuser_reserved_connections=3) as server:
        url = server.new_database()
        query(server.url, "CREATE ROLE many LOGIN PASSWORD 'open sesame'")
        query(server.url, "CREATE ROLE few LOGIN PASSWORD 'open sesame' CONNECTION LIMIT 5")
        levels = phases(*({"concurrency": level, "duration": "300ms", "mix": "RW"} for level in (3, 17, 18)))

        def run(role: str) -> str:
            own = url.replace(url.partition("//")[2].partition("@")[0], f"{role}:open%20sesame", 1)
            ended = call("run", write_study(tmp_path, study_of(own, levels)), "--out", tmp_path / "runs")
            assert ended.code == 2, ended.err
            assert not (tmp_path / "runs").exists()
            return ended.err

        said = run("many")
        assert "measure.0 (load): measure 3 wants 18 sessions at postgresql://" in said
        assert (
            "it takes 16 beside the one that samples its metrics: max_connections is 20, of which 3 are"
            in said
        )
        assert "it takes 4 beside the one that samples its metrics: the role few has a limit of 5" in run(
            "few"
        )
        assert not query(url, "SELECT 1 FROM pg_class WHERE relname LIKE 'nephoscope%'")


def answers(
    monkeypatch: pytest.MonkeyPatch, dialect: Dialect, sessions: Sequence[str], limits: list[list[str]]
) -> None:
    """Have a server answer by its sessions' numbers, one after another, and its limits."""
    numbers = iter(sessions)

    class Admin:
        def __init__(self, url: str, **limits_s: float) -> None:
            del url, limits_s

        def query(self, sql: str) -> tuple[list[str], list[list[str]]]:
            return [], [[next(numbers)]] if sql == dialect.session else limits

        def close(self) -> None: ...

    monkeypatch.setattr("nephoscope._engine.Admin", Admin)


def test_behind_a_pool_of_connections_the_limit_of_the_server_is_no_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialect = DIALECTS["postgres"]
    limits = [["max_connections is 100, of which 3 are reserved", "97", "41"], ["the role r …", "60", "1"]]
    answers(monkeypatch, dialect, ("7", "8", "9", "9"), limits)
    # One is kept for the metrics, and of the others that are connected one has asked as well.
    assert room.room_of(URL, dialect, 1.0) == Room(59, 56, "the role r …")
    assert room.room_of(URL, dialect, 1.0) is None


def test_a_server_without_a_limit_has_no_room_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    dialect = DIALECTS["mysql"]
    answers(monkeypatch, dialect, ("7", "8"), [])
    assert room.room_of("mysql://reader@db.example/bench", dialect, 1.0) is None


PLACES = Room(96, 90, "max_connections is 100, of which 3 are reserved")


@pytest.mark.parametrize(
    ("settings", "wants"),
    [
        ((), None),
        (("measure.4.saturation=330",), "measure.4 (tenancy): staggered_high slot 2 wants 429 sessions at"),
        (("load.sessions=200",), "measure.2 (failover): restart of rw wants 200 sessions at"),
        (("measure.5.concurrency=97",), "measure.5 (scaleout): RO c=97 wants 97 sessions at"),
    ],
)
def test_the_study_perfect_fits_a_server_as_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...], wants: str | None
) -> None:
    monkeypatch.setattr(room, "room_of", lambda *_: PLACES)
    for name in ("RW_URL", "RO_URL"):
        monkeypatch.setenv(name, f"postgresql://bench@{name[:2].lower()}.example/bench")
    study = read_study(find_study("perfect"), settings)
    urls = [f"postgresql://bench@{role}.example/bench" for role in ("rw", "ro")]
    workload, evaluators = prepare(study, urls[0])
    rooms = room.Rooms(study, System(rw=(urls[0],), ro=(urls[1],)), workload)
    assert rooms.of({"order_status": 1.0}) == PLACES
    if wants is None:
        assert rooms.check(evaluators, study.load.sessions) == []
        return
    with pytest.raises(InputError, match=re.escape(wants)):
        rooms.check(evaluators, study.load.sessions)


def test_where_reads_are_spread_each_server_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "room_of", lambda *_: PLACES)
    tables = study_of(URL, throughput(mixes=["RO"], concurrency=[191, 194]))
    tables["load"] |= {"reads": "all", "writer_weight": 2.0}
    replicas = tuple(f"{URL}{number}" for number in range(2))
    study = make_study(tables, "spread")
    workload, evaluators = prepare(study, URL)
    rooms = room.Rooms(study, System(rw=(URL,), ro=replicas), workload)
    # Half of them read where writes go; the other half on two more.
    assert rooms.of({"order_status": 1.0}) == Room(192, 180, PLACES.words)
    with pytest.raises(InputError, match=r"RO c=194 wants 97 sessions at") as refused:
        rooms.check(evaluators, 64)
    assert len(str(refused.value).splitlines()) == 1


def test_what_fits_only_if_others_leave_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "room_of", lambda *_: PLACES)
    study = make_study(study_of(URL, throughput(mixes=["RW"], concurrency=[90, 91, 96])), "crowded")
    workload, evaluators = prepare(study, URL)
    (warning,) = room.Rooms(study, System(rw=(URL,)), workload).check(evaluators, 64)
    assert "RW c=96 wants 96 sessions" in warning
    assert "90 of its 96 places are free now: max_connections is 100" in warning


class Saturating:
    """A load whose throughput grows up to a concurrency, and whose sessions find so many places."""

    def __init__(self, tau: int, places: int) -> None:
        self.phases: dict[int, PhaseRecord] = {}
        self.notes: list[str] = []
        self._tau, self._places = tau, places

    def ask(self, concurrency: int) -> int:
        short = max(concurrency - self._places, 0)
        record = PhaseRecord(
            number=len(self.phases), end_s=1.0, committed=100 * min(concurrency, self._tau, self._places)
        )
        record.latency.record(concurrency * 10**6)
        record.sessions, record.disconnected = [concurrency] * 10, [short] * 10
        self.phases[record.number] = record
        return record.number

    def wait(self) -> None: ...

    def note(self, event: str, *, message: str) -> None:
        self.notes.append(f"{event}: {message}")


@pytest.mark.parametrize(
    ("places", "known", "found", "tried"),
    [
        (300, None, 40, 256),
        (73, Room(73, 73, "it has 73 places"), 40, 73),
        (30, Room(30, 30, "it has 30 places"), 30, 30),
        (30, None, 16, 32),
    ],
)
def test_a_search_stays_within_the_room_and_ends_where_sessions_are_refused(
    places: int, known: Room | None, found: int, tried: int
) -> None:
    load: Any = Saturating(40, places)
    tau = search(load, SearchSettings(), load.ask, known)
    assert tau == pytest.approx(found, abs=found / 8)
    assert max(record.sessions[0] for record in load.phases.values()) == tried
    ended = ["warning: the search for saturation ended at 30 sessions: it has 30 places"]
    assert load.notes == (ended if known is not None and places < 40 else [])


def test_a_search_that_cannot_begin_says_so() -> None:
    load: Any = Saturating(40, 0)
    with pytest.raises(MeasurementError, match="of 1 session, with which it begins, not all were connected"):
        search(load, SearchSettings(), load.ask)


@pytest.mark.parametrize(
    ("phases", "threads", "found"),
    [
        ([], 1, (0, 0)),
        ([[0, 4, 4], [16, 16]], 1, (16, 16)),
        ([[16], [5, 5]], 3, (16, 6)),
        ([[3]], 3, (3, 1)),
    ],
)
def test_a_run_says_how_many_sessions_a_thread_had(
    phases: list[list[int]], threads: int, found: tuple[int, int]
) -> None:
    assert of_threads(phases, threads) == {"sessions": found[0], "sessions_per_thread": found[1]}
