"""F, R and C of stored runs with planted probes: no engine, no chance, and figures that are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope.errors import InputError
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from sample_studies import sim_study
from stored_runs import INTERVAL_S, Step, begin_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nephoscope.store import RunWriter

pytestmark = pytest.mark.light

RATE = 200
TPS = 1000
RESPONSE_S = 0.001


def failover(**settings: Any) -> dict[str, Any]:
    return {"evaluator": "failover", "before": "5s", "after": "10s", "mix": "SELECT", **settings}


def availability(role: str, seconds: float, away: tuple[float, float]) -> Iterator[dict[str, Any]]:
    """Probes of a role that is refused from one time to another."""
    for number in range(round(seconds * RATE)):
        due = number / RATE
        ok = not away[0] <= due < away[1]
        yield {
            "time_s": due,
            "probe": "availability",
            "kind": "write" if role == "rw" else "read",
            "role": role,
            "node": f"{role}1",
            "number": number,
            "sent_s": due,
            "end_s": due + RESPONSE_S,
            "outcome": "ok" if ok else "connection_lost",
            "lower_ms": None,
            "upper_ms": None,
            "polls": 0,
        }


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def course(*levels: tuple[int, float]) -> list[int]:
    """Transactions per interval of a load that has a level for some seconds each."""
    return [round(tps * INTERVAL_S) for tps, seconds in levels for _ in range(round(seconds / INTERVAL_S))]


def finish(writer: RunWriter, committed: int) -> StoredRun:
    totals = dict.fromkeys(("aborted", "failed", "in_flight", "dropped"), 0)
    writer.finish("measured", None, {"started": committed, "committed": committed, **totals})
    return StoredRun(writer.folder)


def failed_run(  # noqa: PLR0917 - what is planted
    folder: Path,
    counts: Sequence[int],
    away: tuple[float, float],
    facts: Mapping[str, Any] | None = None,
    probes: Iterable[Mapping[str, Any]] | None = None,
    latency_ms: Sequence[float] | None = None,
    **settings: Any,
) -> StoredRun:
    labels = {"mix": "SELECT", "concurrency": 16, "role": "rw", "fault": "kill", "repetition": 1}
    tables = sim_study(failover(fault="kill", **settings))
    step = Step(labels, counts, latency_ms or [1.0] * len(counts))
    writer = begin_run(folder, tables, [step], probed=False)
    writer.event(5.0, "fault", measure=0, role="rw", repetition=1, action="kill", node="a", took_s=0.1)
    writer.event(6.0, "error", **{"class": "connection_lost"}, count=16, code="", message="gone")
    if facts:
        writer.event(15.0, "durability", measure=0, role="rw", repetition=1, **facts)
    writer.probes(lines(probes or availability("rw", len(counts) * INTERVAL_S, away)))
    return finish(writer, sum(counts))


def test_f_and_r_of_a_planted_failure(tmp_path: Path) -> None:
    counts = course((TPS, 5), (0, 2), (TPS // 2, 3), (TPS, 5))
    found = scores_of(
        failed_run(tmp_path, counts, (5.0, 7.0), {"acknowledged": 990, "lost": 37, "indeterminate": 2})
    )
    f, r = found["scores"]["F"], found["scores"]["R"]
    assert f["value"] == pytest.approx(2.0, abs=1 / RATE + 2 * RESPONSE_S)
    assert r["value"] == pytest.approx(3.0, abs=INTERVAL_S)
    (failure,) = f["detail"]["failures"]
    assert failure["interrupted"]
    assert failure["tps_before"] == pytest.approx(TPS)
    assert failure["errors"] == {"connection_lost": 16}
    assert (failure["acknowledged"], failure["lost"], failure["indeterminate"]) == (990, 37, 2)


@pytest.mark.parametrize(("gap_s", "warned"), [(0.05, False), (0.2, False), (0.9, True)])
def test_how_finely_a_return_is_known_is_a_warning_only_where_it_makes_the_outage_unsure(
    tmp_path: Path,
    gap_s: float,
    warned: bool,  # noqa: FBT001
) -> None:
    def sparse(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Leave out the probes just after the last one that failed: the return lies somewhere there."""
        yield from (row for row in rows if not 7.0 <= row["time_s"] < 7.0 + gap_s)

    counts = course((TPS, 5), (0, 2), (TPS, 8))
    run = failed_run(tmp_path, counts, (5.0, 7.0), probes=sparse(availability("rw", 15.0, (5.0, 7.0))))
    found = scores_of(run)
    (failure,) = found["scores"]["F"]["detail"]["failures"]
    assert failure["resolution_s"] == pytest.approx(gap_s, abs=0.02)
    assert any("is known only to" in warning for warning in found["warnings"]) == warned


def test_no_interruption_reads_as_none(tmp_path: Path) -> None:
    found = scores_of(failed_run(tmp_path, course((TPS, 15)), (99, 99)))
    assert found["scores"]["F"]["value"] == 0.0
    # What is shorter than a window is not told apart: R lies between 0 and that.
    assert found["scores"]["R"]["value"] == 0.25
    assert found["scores"]["R"]["ci95"] == [0.0, 0.5]
    assert found["scores"]["R"]["detail"]["resolution_s"] == 0.5
    assert not found["scores"]["F"]["detail"]["failures"][0]["interrupted"]


def test_a_second_stall_is_told_by_itself_and_does_not_prolong_the_outage(tmp_path: Path) -> None:
    # The service is back after 1.35 s; two seconds later the machine stands still for longer than that.
    rows = list(availability("rw", 20.0, (5.0, 6.35)))
    for row in rows:
        if 8.4 <= row["time_s"] < 11.0:
            row |= {"outcome": "connection_lost"}
    found = scores_of(failed_run(tmp_path, course((TPS, 20)), (5.0, 6.35), probes=rows))
    score = found["scores"]["F"]
    assert score["value"] == pytest.approx(1.35, abs=1 / RATE + 2 * RESPONSE_S)
    (failure,) = score["detail"]["failures"]
    (later,) = failure["later"]
    assert (later["node"], later["failed_probes"]) == ("rw1", 520)
    assert later["began_s"] == pytest.approx(8.4)
    assert later["back_s"] == pytest.approx(11.0, abs=1 / RATE + RESPONSE_S)
    assert not any("may have another cause" in warning for warning in found["warnings"])


def test_an_outage_that_begins_long_after_the_action_may_have_another_cause(tmp_path: Path) -> None:
    found = scores_of(failed_run(tmp_path, course((TPS, 20)), (9.0, 10.0)))
    assert found["scores"]["F"]["value"] == pytest.approx(5.0, abs=0.01)
    assert (
        "the outage of rw in repetition 1 began 3.9 s after the kill was done: it may have another cause"
        in (found["warnings"])
    )


def test_at_an_open_rate_a_backlog_that_drains_is_no_recovery(tmp_path: Path) -> None:
    # Nothing is committed for 2.5 s after the return; then the backlog drains for a second, at more than the rate.
    counts = course((TPS, 5), (0, 4.5), (4 * TPS, 1), (TPS, 5))
    latency = [1.0 if at < 95 or at >= 105 else 2000.0 for at in range(len(counts))]
    run = failed_run(tmp_path, counts, (5.0, 7.0), latency_ms=latency, rate=TPS)
    score = scores_of(run)["scores"]["R"]
    assert score["value"] == pytest.approx(3.5, abs=INTERVAL_S)
    (failure,) = score["detail"]["failures"]
    assert (failure["load"], failure["least_tps"]) == ("open", None)
    endless = [1.0 if at < 50 else 2000.0 for at in range(len(counts))]
    run = failed_run(tmp_path / "endless", counts, (5.0, 7.0), latency_ms=endless, rate=TPS)
    assert scores_of(run)["absent"]["R"] == (
        "the backlog did not drain, or the latency did not come back, after failure 1 of 1"
    )
    assert failure["most_p95_ms"] == pytest.approx(1 / 0.95, rel=0.01)


def test_a_noisy_closed_load_is_back_when_it_is_as_noisy_as_before(tmp_path: Path) -> None:
    counts = course(*[(1200, 0.5), (800, 0.5)] * 5, (0, 2), *[(1150, 0.5), (850, 0.5)] * 6)
    score = scores_of(failed_run(tmp_path, counts, (5.0, 7.0)))["scores"]["R"]
    assert score["ci95"] == [0.0, 0.5]
    assert score["detail"]["failures"][0]["least_tps"] == pytest.approx(800, abs=5)


def test_a_service_that_does_not_come_back_has_no_score(tmp_path: Path) -> None:
    found = scores_of(failed_run(tmp_path, course((TPS, 5), (0, 10)), (5.0, 99.0)))
    assert "the service did not come back" in found["absent"]["F"]
    assert "the service did not come back" in found["absent"]["R"]


def test_a_throughput_that_does_not_come_back_has_no_r(tmp_path: Path) -> None:
    found = scores_of(failed_run(tmp_path, course((TPS, 5), (0, 1), (TPS // 2, 9)), (5.0, 6.0)))
    assert found["scores"]["F"]["value"] == pytest.approx(1.0, abs=0.01)
    assert "the TPS did not come back" in found["absent"]["R"]


def test_what_a_provider_cannot_do_is_the_reason(tmp_path: Path) -> None:
    step = Step({"mix": "SELECT", "concurrency": 1, "measure": 7}, [1], [1.0])
    writer = begin_run(tmp_path, sim_study(failover()), [step], probed=False)
    writer.event(0.1, "unsupported", measure=0, message="the provider url cannot restart")
    found = scores_of(finish(writer, 1))
    assert found["absent"]["F"] == "the provider url cannot restart"


LAG_MS = {"insert": 3.0, "update": 5.0, "delete": 7.0}


def lag_run(
    folder: Path,
    replicas: int = 1,
    *,
    unseen: bool = False,
    probes: Iterable[Mapping[str, Any]] | None = None,
    more: Iterable[Mapping[str, Any]] = (),
) -> StoredRun:
    folder.mkdir(exist_ok=True)
    settings = {"evaluator": "lag", "loads": [{"name": "busy", "mix": "SELECT"}], "duration": "2s"}
    steps = [
        Step(
            {"mix": "SELECT", "concurrency": 8, "load": "busy", "repetition": repetition},
            [100] * 20,
            [1.0] * 20,
        )
        for repetition in (1, 2, 3)
    ]
    writer = begin_run(folder, sim_study(settings), steps, probed=False)
    rows: list[dict[str, Any]] = [
        {
            "time_s": 0.1 + number * 0.15,
            "probe": "lag",
            "kind": list(LAG_MS)[number % 3],
            "role": "ro",
            "node": f"ro{replica}",
            "number": number,
            "sent_s": 0.1 + number * 0.15,
            "end_s": 0.2 + number * 0.15,
            "outcome": "ok",
            "lower_ms": LAG_MS[list(LAG_MS)[number % 3]] - 0.1,
            "upper_ms": LAG_MS[list(LAG_MS)[number % 3]] + 0.1,
            "polls": 3,
        }
        for number in range(39)
        for replica in range(1, replicas + 1)
    ]
    if unseen:
        rows[0] |= {"outcome": "not_seen", "lower_ms": 10_000.0, "upper_ms": None}
    writer.probes(lines([*(rows if probes is None else probes), *more]))
    return finish(writer, 6000)


def test_c_is_the_sum_of_the_mean_lags(tmp_path: Path) -> None:
    score = scores_of(lag_run(tmp_path))["scores"]["C"]
    assert score["value"] == pytest.approx(0.015)
    assert score["repetitions"] == 3
    summary = score["detail"]["lag_ms"]["busy"]["update"]
    assert summary["mean"] == pytest.approx(5.0)
    assert summary["half_width_p50"] == pytest.approx(0.1)
    assert summary["unseen"] == 0


def test_c_is_over_the_replicas(tmp_path: Path) -> None:
    score = scores_of(lag_run(tmp_path, replicas=2))["scores"]["C"]
    assert score["value"] == pytest.approx(0.0075)
    assert score["detail"]["replicas"] == 2


def test_a_marker_that_was_never_seen_counts_and_is_told(tmp_path: Path) -> None:
    found = scores_of(lag_run(tmp_path, unseen=True))
    assert found["scores"]["C"]["value"] > 0.1
    assert any("1 markers were not seen" in warning for warning in found["warnings"])


def test_c_is_at_least_and_no_better_where_a_replica_goes_away(tmp_path: Path) -> None:
    """A lag of 2 s; then the replica is gone, and the last markers are looked for no longer than 1 s."""

    def markers(gone_s: float) -> Iterator[dict[str, Any]]:
        for number in range(117):
            at = 0.05 + number * 0.05
            gone = at >= gone_s
            yield {
                "time_s": at,
                "probe": "lag",
                "kind": list(LAG_MS)[number % 3],
                "role": "ro",
                "node": "ro1",
                "number": number,
                "sent_s": at,
                "end_s": at + 2,
                "outcome": "connection_lost" if gone else "ok",
                "lower_ms": 1000.0 if gone else 2000.0,
                "upper_ms": None if gone else 2000.0,
                "polls": 3,
            }

    before = scores_of(lag_run(tmp_path / "before", probes=markers(99.0)))
    after = scores_of(lag_run(tmp_path / "after", probes=markers(5.0)))
    assert before["scores"]["C"]["value"] == pytest.approx(6.0)
    assert not before["scores"]["C"]["detail"]["at_least"]
    assert after["scores"]["C"]["value"] >= 6.0 - 1e-9
    assert after["scores"]["C"]["detail"]["at_least"]
    assert any("18 on ro1" in warning and "C is a lower bound" in warning for warning in after["warnings"])
    assert not any("could not be committed" in warning for warning in after["warnings"])


def test_markers_that_were_not_committed_are_counted(tmp_path: Path) -> None:
    def markers() -> Iterator[dict[str, Any]]:
        row = {
            "time_s": 0.3,
            "probe": "lag",
            "kind": "insert",
            "role": "rw",
            "node": "rw",
            "number": 1000,
            "polls": 0,
        }
        row |= dict.fromkeys(("sent_s", "end_s", "lower_ms", "upper_ms"))
        yield from ({**row, "outcome": outcome} for outcome in ("missing", "missing", "statement_timeout"))

    found = scores_of(lag_run(tmp_path, more=markers()))
    assert found["scores"]["C"]["value"] == pytest.approx(0.015)
    assert any(
        "could not be committed (2 missing, 1 statement_timeout)" in warning for warning in found["warnings"]
    )


def test_a_probe_that_fails_by_chance_before_the_command_takes_effect_is_not_the_outage(
    tmp_path: Path,
) -> None:
    counts = course((TPS, 8), (0, 2), (TPS, 5))
    labels = {"mix": "SELECT", "concurrency": 16, "role": "rw", "fault": "kill", "repetition": 1}
    writer = begin_run(
        tmp_path, sim_study(failover(fault="kill")), [Step(labels, counts, [1.0] * len(counts))], probed=False
    )
    writer.event(5.0, "fault", measure=0, role="rw", repetition=1, action="kill", node="a", took_s=3.1)
    rows = list(availability("rw", 15, (8.0, 10.0)))
    # One fails by chance before, while the command has not yet touched the system; and the very last one.
    for number in (1100, len(rows) - 1):
        rows[number] |= {"outcome": "connection_lost"}
    writer.probes(lines(rows))
    score = scores_of(finish(writer, sum(counts)))["scores"]["F"]
    assert score["value"] == pytest.approx(5.0, abs=1 / RATE + 2 * RESPONSE_S)


def test_more_markers_than_can_be_looked_for_are_refused() -> None:
    entry = {"evaluator": "lag", "limit": "100s", "marker_interval": "5ms"}
    with pytest.raises(InputError, match=r"it must be at least 0\.01 s, or more than 10,000 markers"):
        make_study(sim_study(entry), "lag")
    make_study(sim_study({**entry, "marker_interval": "10ms"}), "lag")
