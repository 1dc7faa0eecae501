"""Two runs side by side: planted differences are called by their names, and chance is not."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.compare import compare_runs
from nephoscope.errors import InputError
from nephoscope.store import StoredRun
from sample_studies import Tables, phases, sim_study, throughput
from stored_runs import Step, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEVELS = (2, 8)


def study(repetitions: int) -> Tables:
    return sim_study(throughput(concurrency=list(LEVELS), duration="4s", repetitions=repetitions))


def run(
    folder: Path,
    *,
    tps: float = 1000,
    latency_ms: float = 2.0,
    noise: float = 0.02,
    repetitions: int = 5,
    levels: tuple[int, ...] = LEVELS,
    manifest: Mapping[str, Any] | None = None,
) -> StoredRun:
    """Plant a run whose TPS and latency scatter around their levels, from repetition to repetition and within."""
    chance = random.Random(f"{folder.name} {repetitions}")  # noqa: S311 - no secret is drawn
    steps = []
    for repetition in range(1, repetitions + 1):
        for level in levels:
            shift = chance.gauss(1, noise)
            counts = [round(tps * level / 10 * shift * chance.gauss(1, noise)) for _ in range(40)]
            latencies = [latency_ms * shift * chance.gauss(1, noise) for _ in range(40)]
            labels = {"mix": "SELECT", "concurrency": level, "repetition": repetition}
            steps.append(Step(labels, counts, latencies))
    return StoredRun(write_run(folder, study(repetitions), steps, manifest))


def verdicts(baseline: StoredRun, candidate: StoredRun) -> dict[str, str]:
    figures, _ = compare_runs(baseline, candidate)
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
    figures, _ = compare_runs(baseline, candidate)
    first = figures[0].comparison
    assert first.relative == pytest.approx(tps / 1000 - 1, abs=0.05)
    assert first.relative_ci95 is not None
    assert first.relative_ci95[0] <= tps / 1000 - 1 <= first.relative_ci95[1]


def test_one_repetition_is_compared_by_its_intervals(tmp_path: Path) -> None:
    baseline, candidate = (
        run(tmp_path / name, repetitions=1, tps=tps) for name, tps in (("a", 1000), ("b", 1500))
    )
    figures, _ = compare_runs(baseline, candidate)
    by_name = {figure.name: figure.comparison for figure in figures}
    # The difference of the phases is real. Whether it is of the systems no single repetition can tell.
    assert by_name["SELECT c=2 TPS"].ci95 is not None
    assert by_name["SELECT c=2 TPS"].ci95[0] > 0
    assert by_name["SELECT c=2 p99"].ci95 is None
    assert by_name["SELECT c=2 p99"].verdict == "no difference seen"


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
    figures, notes = compare_runs(baseline, candidate)
    assert {figure.name.rsplit(" ", 1)[0] for figure in figures} >= {"SELECT c=2"}
    assert not [figure for figure in figures if "c=4" in figure.name or "c=8" in figure.name]
    assert notes == [
        "the runs differ in load.threads: 1 and 4",
        "the runs differ in load.statement_mode: prepared and simple",
        "the runs differ in host.name: planet and moon",
        "the runs differ in host.cpu: abacus and None",
        "only in the baseline: SELECT c=4",
        "only in the candidate: SELECT c=8",
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
    assert first[:4] == ["SELECT", "c=2", "TPS", "(1/s)"]
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
