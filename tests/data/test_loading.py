"""Data in a real database: loaded once, known again, never measured when a load broke off."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from commands import call, finish, start, wait_for
from databases import Server, query, running_server, study_of
from sample_studies import phases, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BRIEF = phases({"duration": "1s", "mix": "RW", "concurrency": 2})
ROWS = {"customer": 600, "orders": 600}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.new_database()


def counted(url: str) -> dict[str, int]:
    return {table: int(query(url, f"SELECT count(*) FROM {table}")[0][0] or 0) for table in ROWS}


def verdicts(study: Path, *settings: str) -> dict[str, tuple[str, str]]:
    checked = call("check", study, "--json", *settings)
    return {result["name"]: (result["verdict"], result["detail"]) for result in json.loads(checked.out)}


def test_loading_twice_does_nothing_and_says_what_is_there(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    first = call("load", study)
    assert (first.code, first.err) == (0, "")
    assert "sales: loaded " in first.out
    assert " rows, SF 0.002, seed 7, products 100000, in " in first.out
    query(url, "UPDATE customer SET c_credit = 3")
    second = call("load", study)
    assert (second.code, second.out) == (0, "sales: already loaded, SF 0.002, seed 7, products 100000\n")
    assert query(url, "SELECT sum(c_credit) FROM customer") == [["1800.00"]]
    forced = call("load", study, "--force", "--threads", "3")
    assert forced.code == 0
    assert counted(url) == ROWS
    assert query(url, "SELECT sum(c_credit) FROM customer") == [["0.00"]]


def test_the_same_seed_makes_the_same_data(server: Server, tmp_path: Path) -> None:
    digest = "SELECT md5(string_agg(o::text, ',' ORDER BY o_id)) FROM orders o"
    digests = {}
    for name, settings in {
        "one": [],
        "same": ["--threads", "4"],
        "other": ["--set", "workload.data_seed=8"],
    }.items():
        url = server.new_database()
        study = write_study(tmp_path, study_of(url, BRIEF), f"{name}.toml")
        assert call("load", study, *settings).code == 0
        digests[name] = query(url, digest)[0][0]
    assert digests["one"] == digests["same"] != digests["other"]


@pytest.mark.parametrize(
    ("setting", "loaded"),
    [("workload.scale=0.001", "SF 0.001, seed 7"), ("workload.data_seed=8", "SF 0.002, seed 8")],
)
def test_data_of_another_kind_is_not_taken_for_the_study_s(
    url: str, tmp_path: Path, setting: str, loaded: str
) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    assert call("load", study, "--set", setting).code == 0
    options = "products 100000"
    message = f"loaded is {loaded}, {options}, the study says SF 0.002, seed 7, {options}"
    refused = call("load", study)
    anew = f"nephoscope load {study} --force"
    assert (refused.code, refused.err) == (1, f"nephoscope: sales: {message}; to load it anew: {anew}\n")
    for load in ("missing", "never"):
        run = call("run", study, "--out", tmp_path / "runs", "--set", f"workload.load={load}")
        assert run.code == 1
        assert message in run.err
        assert run.err.endswith(f": nephoscope load {study} --set workload.load={load} --force\n")
    assert not (tmp_path / "runs").exists()
    assert call("run", study, "--out", tmp_path / "runs", "--set", "workload.load=always").code == 0


def test_in_the_cache_one_study_s_data_makes_room_for_another_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tables = {**study_of("", BRIEF), "system": {"provider": "embedded-sqlite"}}
    study, other = write_study(tmp_path, tables), ("--set", "workload.scale=0.001")
    for given, scale in ((other, "SF 0.001"), ((), "SF 0.002")):
        ran = call("run", study, "--out", tmp_path / "runs", *given)
        assert ran.code == 0, ran.err
        assert f" rows, {scale}, seed 7" in ran.err + ran.out
    own = ("--set", f"system.data={tmp_path / 'own'}")
    assert call("load", study, *own, *other).code == 0
    refused = call("run", study, "--out", tmp_path / "runs", *own)
    assert refused.code == 1
    assert "loaded is SF 0.001" in refused.err


def test_what_is_not_loaded_is_not_measured_where_loading_is_forbidden(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF, load="never"))
    missing = "the data of sales is not loaded (SF 0.002, seed 7, products 100000)"
    for command in ("run", "check"):
        ended = call(command, study)
        anew = f"nephoscope load {study}"
        assert (ended.code, ended.err) == (1, f"nephoscope: {missing}; load it with: {anew}\n")
    assert query(url, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'") == [
        ["0"]
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_load_that_broke_off_is_seen_and_never_measured(
    url: str, tmp_path: Path, number: signal.Signals
) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    with start("load", study, "--set", "workload.scale=3", cwd=tmp_path) as process:
        loading = "SELECT 1 FROM pg_stat_progress_copy"
        wait_for(lambda: query(url, loading), "rows are being copied")
        process.send_signal(number)
        ended = finish(process)
    assert ended.code == (1 if number == signal.SIGINT else -number)
    incomplete = "the data of sales is incomplete: a load broke off; load it with: nephoscope load"
    never = call("run", study, "--out", tmp_path / "runs", "--set", "workload.load=never")
    assert never.code == 1
    assert never.err == f"nephoscope: {incomplete} {study} --set workload.load=never --force\n"
    assert call("check", study).err == f"nephoscope: {incomplete} {study} --force\n"
    assert not (tmp_path / "runs").exists()
    # Loading again replaces what is there.
    again = call("load", study)
    assert again.code == 0, again.err
    assert counted(url) == ROWS
    assert {verdict for verdict, _ in verdicts(study).values()} == {"holds"}


def test_what_runs_add_up_is_checked(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    for _ in range(2):
        ended = call("run", study, "--out", tmp_path / "runs")
        assert ended.code == 0, ended.err
    found = verdicts(study)
    assert found.pop("order_totals") == ("not checked", "it holds only until a run has changed the data")
    assert call("check", study).code == 0
    assert set(found.values()) == {("holds", "")}
    # A payment that is lost is found.
    query(
        url,
        "UPDATE customer SET c_credit = 0 WHERE c_id = (SELECT min(c_id) FROM customer WHERE c_credit > 0)",
    )
    broken = call("check", study)
    assert broken.code == 1
    assert broken.err == "nephoscope: the data breaks an invariant\n"
    assert "✗ the customers' credit equals what was paid (broken: " in broken.out
    assert verdicts(study)["credit_by_customer"][0] == "broken"


def test_after_a_killed_run_its_sums_are_unknown(url: str, tmp_path: Path) -> None:
    endless = phases({"duration": "600s", "mix": "RW", "concurrency": 2})
    study = write_study(tmp_path, study_of(url, endless))
    with start("run", study, cwd=tmp_path) as process:
        wait_for((tmp_path / "runs" / "latest" / "intervals.jsonl").exists, "the run has begun")
        process.send_signal(signal.SIGKILL)
        finish(process)
    run = (tmp_path / "runs" / "latest").resolve().name
    wait_for(lambda: query(url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == [["1"]],
             "the sessions are gone")  # fmt: skip
    found = verdicts(study)
    anew = f"to load the data anew: nephoscope load {study} --force"
    reason = f"the run {run} did not end: what it has added up is not known; {anew}"
    assert found["sum_of_lines"] == found["credit_is_paid"] == ("unknown", reason)
    assert found["lines_have_orders"] == found["credit_by_customer"] == ("holds", "")
    checked = call("check", study)
    assert checked.code == 3
    assert checked.err == "nephoscope: whether the data keeps every invariant cannot be told\n"
    assert anew in checked.out
    # A run that was killed is not taken for one that goes on.
    assert call("load", study, "--force").code == 0
    assert {verdict for verdict, _ in verdicts(study).values()} == {"holds"}


def test_a_load_whose_sessions_are_cut_off_fails_with_one_message(url: str, tmp_path: Path) -> None:
    study = write_study(tmp_path, study_of(url, BRIEF))
    with start("load", study, "--set", "workload.scale=3", cwd=tmp_path) as process:
        # Seen and cut off by one query: a copy that is seen first may be over by the second.
        cut_off = "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_copy"
        wait_for(lambda: query(url, cut_off), "rows are being copied")
        ended = finish(process)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err
    assert ended.err.startswith("nephoscope: ")
    assert "incomplete: a load broke off" in call("check", study).err
