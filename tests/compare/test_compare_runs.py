"""Two runs side by side: planted differences are called by their names, and chance is not."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from commands import call
from nephoscope.errors import InputError
from nephoscope.results.compare import ONE_RUN_A_SIDE, compare_runs, comparison_table
from nephoscope.results.scores import scores_of
from nephoscope.store import StoredRun
from planted_runs import LEVELS, run, study
from sample_studies import phases, sim_study, throughput
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from pathlib import Path


def verdicts(baseline: StoredRun, candidate: StoredRun) -> dict[str, str]:
    figures = compare_runs(baseline, candidate).figures
    return {figure.name: figure.comparison.verdict for figure in figures}


@pytest.mark.parametrize(
    ("tps", "latency_ms", "called"),
    [
        (1300, 2.0, ("faster", "no difference seen")),
        (700, 2.0, ("slower", "no difference seen")),
        (1000, 3.0, ("no difference seen", "slower")),
        (1000, 1.4, ("no difference seen", "faster")),
        (1000, 2.0, ("no difference seen", "no difference seen")),
    ],
)
def test_a_planted_difference_is_called_by_its_name(
    tmp_path: Path, tps: float, latency_ms: float, called: tuple[str, str]
) -> None:
    baseline = run(tmp_path / "baseline")
    candidate = run(tmp_path / "candidate", tps=tps, latency_ms=latency_ms)
    found = verdicts(baseline, candidate)
    for level in LEVELS:
        assert (found[f"SELECT c={level} TPS"], found[f"SELECT c={level} p50"]) == called
    figures = compare_runs(baseline, candidate).figures
    first = figures[0].comparison
    assert first.relative == pytest.approx(tps / 1000 - 1, abs=0.05)
    assert first.relative_ci95 is not None
    assert first.relative_ci95[0] <= tps / 1000 - 1 <= first.relative_ci95[1]


def test_one_repetition_is_compared_by_its_intervals(tmp_path: Path) -> None:
    baseline, candidate = (
        run(tmp_path / name, repetitions=1, tps=tps) for name, tps in (("a", 1000), ("b", 1500))
    )
    figures = compare_runs(baseline, candidate).figures
    by_name = {figure.name: figure.comparison for figure in figures}
    # The difference of the phases is real. Whether it is of the systems no single repetition can tell.
    assert by_name["SELECT c=2 TPS"].ci95 is not None
    assert by_name["SELECT c=2 TPS"].ci95[0] > 0
    assert by_name["SELECT c=2 p99"].ci95 is None
    assert by_name["SELECT c=2 p99"].verdict == "cannot tell"


def test_a_percentile_is_that_of_the_run_and_no_mean_of_the_repetitions(tmp_path: Path) -> None:
    labels = {"mix": "SELECT", "concurrency": 2}
    slow_once = [(1000, 2.0), (1000, 2.1), (100, 6.0)]
    steps = [
        Step({**labels, "repetition": number}, [count] * 10, [latency] * 10)
        for number, (count, latency) in enumerate(slow_once, 1)
    ]
    a, b = (StoredRun(write_run(tmp_path / name, study(3), steps)) for name in ("a", "b"))
    compared = compare_runs(a, b)
    (p50,) = (figure for figure in compared.figures if figure.name == "SELECT c=2 p50")
    own = scores_of(a)["scores"]["P"]["detail"]["mixes"]["SELECT"]["latency_ms"]["p50"]
    assert p50.baseline == p50.candidate == own == pytest.approx(2.1, rel=1e-3)
    (row,) = (row for row in comparison_table(compared).cells if row[0] == "SELECT c=2 p50")
    assert row[1] == row[2] == "2.1 ms"


def test_a_lower_bound_is_no_smaller_figure(tmp_path: Path) -> None:
    def planted(name: str, latency_ms: float, unstarted: int = 0) -> StoredRun:
        steps = [
            Step(
                {"mix": "SELECT", "concurrency": 2, "repetition": number},
                [100] * 10,
                [latency_ms * (1 + number / 1000)] * 10,
                unstarted_ms=[50 + number / 10] * unstarted,
            )
            for number in range(1, 6)
        ]
        return StoredRun(write_run(tmp_path / name, study(5), steps))

    overloaded = planted("overloaded", 2.0, unstarted=200)
    for name, latency_ms, before, after in (
        ("quick", 2.0, "faster", "slower"),
        ("slow", 80.0, "cannot tell", "cannot tell"),
    ):
        other = planted(name, latency_ms)
        for runs, verdict, bound in (
            ((overloaded, other), before, "baseline"),
            ((other, overloaded), after, "candidate"),
        ):
            compared = compare_runs(*runs)
            (p99,) = (figure for figure in compared.figures if figure.name.endswith("p99"))
            assert (p99.comparison.verdict, p99.at_least) == (verdict, (bound,))
            (row,) = (row for row in comparison_table(compared).cells if row[0].endswith("p99"))
            assert [cell.startswith("≥ ") for cell in row[1:3]] == [bound == "baseline", bound == "candidate"]


def test_what_both_runs_say_of_themselves_is_carried_over(tmp_path: Path) -> None:
    run(tmp_path / "baseline", repetitions=2)
    # Of a median of 0.02 ms the schedule lag of 5 µs is a quarter: the client was the limit.
    run(tmp_path / "candidate", repetitions=2, latency_ms=0.02)
    told = call("compare", tmp_path / "baseline", tmp_path / "candidate").out
    assert "✗ candidate: the client was the limit: transactions started up to" in told
    assert "baseline: the client was the limit" not in told
    for name in ("baseline", "candidate"):
        assert f"! {name}: 2 repetitions only" in told
    both = json.loads(call("compare", tmp_path / "baseline", tmp_path / "candidate", "--json").out)
    assert both["said"][0]["run"] == "candidate"
    assert both["said"][0]["level"] == "problem"


def test_what_two_entries_measure_is_not_mixed(tmp_path: Path) -> None:
    tables = sim_study(
        throughput(concurrency=[2], duration="1s"), phases({"concurrency": 2, "duration": "1s"})
    )
    labels = {"mix": "SELECT", "concurrency": 2}
    steps = [Step(labels, [10] * 10, [1.0] * 10), Step({**labels, "measure": 1}, [90] * 10, [1.0] * 10)]
    a, b = (StoredRun(write_run(tmp_path / name, tables, steps)) for name in ("a", "b"))
    rates = [figure.baseline for figure in compare_runs(a, b).figures if figure.name.endswith("TPS")]
    assert rates == [100, 900]


@pytest.mark.parametrize("effect", [1.0, 1.5])
def test_runs_on_a_machine_that_drifts_are_told_apart_only_where_the_system_changed(
    tmp_path: Path, effect: float
) -> None:
    """Runs one after the other; the machine's speed walks by 1 % within each, and as far between two."""
    chance = random.Random(7)  # noqa: S311 - no secret is drawn
    speed, runs = 1.0, []
    for number in range(6):
        steps = []
        speed *= 1 + chance.gauss(0, 0.01)
        for repetition in range(1, 6):
            for level in LEVELS:
                speed *= 1 + chance.gauss(0, 0.01 / 10**0.5)
                system = effect if number % 2 else 1.0
                counts = [round(level * 100 * system * speed * chance.gauss(1, 0.003)) for _ in range(40)]
                latency = 2.0 / system / speed
                labels = {"mix": "SELECT", "concurrency": level, "repetition": repetition}
                steps.append(Step(labels, counts, [latency * chance.gauss(1, 0.003) for _ in range(40)]))
        runs.append(StoredRun(write_run(tmp_path / str(number), study(5), steps)))
    pairs = [verdicts(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    changed = {"SELECT c=2 TPS", "SELECT c=8 TPS", "SELECT c=2 p50", "SELECT c=8 p50"}
    for found in pairs:
        for name, verdict in found.items():
            wanted = "faster" if effect > 1 and name in changed else "no difference seen"
            if wanted == "faster" or effect == 1:
                assert verdict == wanted, name


def test_a_run_compared_with_itself_shows_no_difference(tmp_path: Path) -> None:
    same = run(tmp_path / "same")
    assert set(verdicts(same, same).values()) == {"no difference seen"}


def test_steps_of_a_search_are_not_compared(tmp_path: Path) -> None:
    steps = [
        Step({"mix": "SELECT", "concurrency": 4, "search": True}, [10] * 10, [1.0] * 10),
        Step({"mix": "SELECT", "concurrency": 8}, [10] * 10, [1.0] * 10),
    ]
    searched = StoredRun(write_run(tmp_path / "searched", study(1), steps))
    assert {name.split(" ")[1] for name in verdicts(searched, searched)} == {"c=8"}


def test_what_else_differs_is_noted(tmp_path: Path) -> None:
    other = {"load": {"threads": 4, "statement_mode": "simple", "pipeline": False}, "host": {"name": "moon"}}
    baseline = run(tmp_path / "baseline", levels=(2, 4))
    candidate = run(tmp_path / "candidate", levels=(2, 8), manifest=other)
    compared = compare_runs(baseline, candidate)
    figures, notes = compared.figures, compared.notes
    assert {figure.name.rsplit(" ", 1)[0] for figure in figures} >= {"SELECT c=2"}
    assert not [figure for figure in figures if "c=4" in figure.name or "c=8" in figure.name]
    assert notes == [
        "the runs differ in load.threads: 1 and 4",
        "the runs differ in load.statement_mode: prepared and simple",
        "the runs differ in host.name: planet and moon",
        "the runs differ in host.cpu: abacus and None",
        "only in the baseline: SELECT c=4",
        "only in the candidate: SELECT c=8",
        ONE_RUN_A_SIDE,
    ]


def test_runs_without_a_common_point_are_refused(tmp_path: Path) -> None:
    baseline, candidate = run(tmp_path / "baseline", levels=(2,)), run(tmp_path / "candidate", levels=(8,))
    with pytest.raises(InputError, match=r"no measured point in common.*\(SELECT c=2 against SELECT c=8\)"):
        compare_runs(baseline, candidate)


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    run(tmp_path / "baseline")
    run(tmp_path / "candidate", tps=1300)
    shown = call("compare", tmp_path / "baseline", tmp_path / "candidate")
    assert shown.code == 0
    first = shown.out.splitlines()[1].split()
    assert first[:3] == ["SELECT", "c=2", "TPS"]
    assert first[-1] == "faster"
    told = call("compare", tmp_path / "baseline", tmp_path / "candidate", "--json")
    assert told.code == 0
    figures = {figure["name"]: figure for figure in json.loads(told.out)["figures"]}
    assert figures["SELECT c=2 TPS"]["verdict"] == "faster"
    assert figures["SELECT c=2 TPS"]["relative"] == pytest.approx(0.3, abs=0.05)


def test_the_command_refuses_what_is_no_run(tmp_path: Path) -> None:
    run(tmp_path / "baseline", repetitions=1)
    refused = call("compare", tmp_path / "baseline", tmp_path / "nothing")
    assert (refused.code, refused.out) == (2, "")
    message = f"{tmp_path}/nothing is no run directory: manifest.json: No such file or directory"
    assert refused.err == f"nephoscope: {message}\n"


def test_phases_of_a_course_of_load_are_compared_as_well(tmp_path: Path) -> None:
    tables = sim_study(phases({"concurrency": 4, "duration": "1s"}))
    steps = [Step({"mix": "SELECT", "concurrency": 4}, [100] * 10, [2.0] * 10)]
    both = [StoredRun(write_run(tmp_path / name, tables, steps)) for name in ("a", "b")]
    assert "SELECT c=4 TPS" in verdicts(both[0], both[1])
