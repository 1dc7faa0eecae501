"""Experiments as they are run: on a system whose truth is planted, interrupted, changed, wrong."""

# ruff: noqa: RUF001 - times

from __future__ import annotations

import copy
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from browser import CHROMIUM, browse_page
from commands import call, finish, start, wait_for
from nephoscope.experiments.boxes import boxes
from nephoscope.experiments.curves import curves
from nephoscope.experiments.kept import Kept
from nephoscope.experiments.planning import plan_of
from nephoscope.experiments.results import read_results
from nephoscope.study.overrides import put
from nephoscope.study.packaged import find_study
from nephoscope.systems.sim import Sim, SimSettings
from sample_studies import Tables, sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.systems.base import System

LATENCY = {"name": "latency", "key": "system.plan.latency", "levels": ["constant(2ms)", "constant(4ms)"]}
REFERENCE = {"name": "another's", "source": "page 1", "points": [[1, 450], [2, 900]]}
SESSIONS = {"name": "sessions", "key": "measure.0.concurrency", "levels": [1, 2]}


def experiment(*factors: Tables, duration: str = "100ms", **table: Any) -> Tables:
    made = sim_study(throughput(warmup="50ms", duration=duration), load={"interval": "50ms"})
    made["system"] = {
        "provider": "sim",
        "plan": {"latency": "constant(1ms)"},
        "resources": made["system"]["resources"],
    }
    return {**made, "factor": copy.deepcopy(list(factors) or [LATENCY, SESSIONS]), "experiment": table}


@pytest.mark.alone
def test_planted_effects_are_read_back(tmp_path: Path) -> None:
    study = experiment(duration="600ms", replicates=3, responses=["tps", "mean_ms"], scaling="sessions")
    ended = call("experiment", write_study(tmp_path, study), "--out", tmp_path / "x")
    assert ended.code == 0, ended.err
    found = read_results(tmp_path / "x")
    of = {(a.response, e.label): e for a in found.analyses for e in a.effects}
    # The round trip has the client's own time beside what is planted; it is the same at both levels.
    for key, planted in (
        (("mean_ms", "latency"), 2.0),
        (("mean_ms", "sessions"), 0.0),
        (("mean_ms", "latency × sessions"), 0.0),
    ):
        effect = of[key]
        assert effect.ci95 is not None
        # Twice the interval: 1 of 20 would miss it otherwise, and this runs every day.
        assert abs(effect.value - planted) <= max(effect.ci95[1] - effect.ci95[0], 0.1), (key, effect)
    assert of["mean_ms", "latency"].clear
    assert of["tps", "latency"].value < 0 < of["tps", "sessions"].value
    assert found.scaling is not None
    (twice,) = found.scaling.scale_up
    assert twice.ci95 is not None
    # Twice the sessions, twice the throughput; also here twice the interval.
    assert abs(twice.value - 2) <= max(twice.ci95[1] - twice.ci95[0], 0.1)
    assert [ratio.value for ratio in found.scaling.cost] == [1]
    # The slow system is worse in both objectives; two sessions of the fast one have twice the throughput of one.
    standing = {tuple(found.experiment.levels(t.treatment).values()): t.standing for t in found.treatments}
    assert standing["constant(2ms)", "2"] != "dominated"
    assert standing["constant(4ms)", "1"] == "dominated"
    boxes = {found.experiment.label(t.treatment): t.boxes_ms[""] for t in found.treatments}
    medians = {label: box[2] for label, box in boxes.items()}
    assert medians["latency constant(4ms), sessions 1"] == pytest.approx(4, rel=0.2)


def test_responses_are_of_transactions_and_of_what_sessions_saw(tmp_path: Path) -> None:
    old = {"name": "old", "key": "system.plan.old_read", "levels": [0.0, 0.5]}
    study = experiment(
        old, duration="400ms", responses=["p50_ms:select_only", "p50_ms:simple_update", "stale"]
    )
    study["measure"][0]["mixes"] = [{"select_only": 1, "simple_update": 1}]
    seen = {"evaluator": "consistency", "readers": 2, "read_interval": "2ms", "write_interval": "20ms"}
    study["measure"].append({**seen, "warmup": "100ms", "duration": "1s", "limit": "1s"})
    ended = call("experiment", write_study(tmp_path, study), "--out", tmp_path / "x")
    assert ended.code == 0, ended.err
    found = read_results(tmp_path / "x")
    for run in found.runs:
        select, update = run.values["p50_ms:select_only"], run.values["p50_ms:simple_update"]
        assert select is not None
        assert update is not None
        # One round trip of 1 ms against several.
        assert 1 < select < update / 2
    never, often = (treatment.means["stale"].mean for treatment in found.treatments)
    assert never == 0 < often
    charts = {chart.id: chart for chart in boxes(found)}
    assert set(charts) == {"boxes-select_only-", "boxes-simple_update-"}
    (line,) = charts["boxes-select_only-"].lines
    assert [label for _, label in charts["boxes-select_only-"].x.ticks] == ["0", "0.5"]
    assert len(line.boxes) == 2


class _Counted(Sim):
    """Counts."""

    started = stopped = 0

    def start(self) -> System:
        _Counted.started += 1
        return super().start()

    def stop(self) -> None:
        _Counted.stopped += 1
        super().stop()


def test_a_system_is_kept_for_the_runs_that_measure_the_same(tmp_path: Path) -> None:
    _, studies = plan_of(write_study(tmp_path, experiment(blocks="latency", replicates=1)))
    systems = []
    with Kept() as kept:
        for study in studies:
            assert isinstance(study.system, SimSettings)
            with kept.around(study)(_Counted(study.system)) as provider:
                systems.append(provider.start())
                assert provider.name == "sim"
    assert systems[0] is systems[1] is not systems[2] is systems[3]
    assert (_Counted.started, _Counted.stopped) == (2, 2)


def test_an_experiment_that_keeps_its_system_is_whole(tmp_path: Path) -> None:
    study = experiment(blocks=["latency"], replicates=1, keep_system=True)
    ended = call("experiment", write_study(tmp_path, study), "--out", tmp_path / "x")
    assert ended.code == 0, ended.err
    assert read_results(tmp_path / "x").missing == 0


def test_only_what_is_missing_is_run_again(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, experiment(replicates=1)), tmp_path / "x"
    first = call("experiment", study, "--out", out)
    assert first.code == 0
    told = [line for line in first.err.splitlines() if line.startswith("run ")]
    assert [" left" in line for line in told] == [False, True, True, True]
    runs = sorted(run for run in (out / "runs").iterdir() if not run.is_symlink())
    assert [run.name.partition("-")[2] for run in runs] == [f"planted-{n:03d}" for n in (1, 2, 3, 4)]
    manifest = json.loads((runs[1] / "manifest.json").read_text())
    (runs[1] / "manifest.json").write_text(json.dumps(manifest | {"status": "interrupted"}))
    assert read_results(out).missing == 1
    again = call("experiment", study, "--out", out)
    assert again.code == 0
    told = [line for line in again.err.splitlines() if line.startswith("run ")]
    assert len(told) == 1
    assert told[0].startswith("run 2 of 4: latency constant(")
    assert len([run for run in (out / "runs").iterdir() if not run.is_symlink()]) == 5
    assert read_results(out).missing == 0
    # The report of the folder has the same tables, also as Markdown and as files.
    tables = tmp_path / "tables"
    ended = call("report", out, "--format", "markdown", "--tables", tables)
    assert ended.code == 0
    assert "| response | term | effect |" in ended.out
    assert {file.name for file in tables.glob("*.csv")} == {
        f"{n}.csv" for n in ("effects", "models", "treatments", "runs")
    }
    results = json.loads((out / "results.json").read_text())
    assert {row["term"] for row in results["effects"]} == {"latency", "sessions", "latency × sessions"}


def test_a_changed_study_is_refused(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, experiment(replicates=1)), tmp_path / "x"
    assert call("experiment", study, "--out", out).code == 0
    before = sorted(out.rglob("*"))
    for change, message in (
        ("experiment.replicates=2", "holds another experiment: its experiment is not what the study says"),
        ("factor.1.levels=[1,4]", "holds another experiment: its factors is not what the study says"),
        ("measure.0.warmup=1s", "holds another experiment: its runs have another study than this one"),
    ):
        ended = call("experiment", study, "--out", out, "--set", change)
        assert ended.code == 2
        assert message in ended.err
    assert sorted(out.rglob("*")) == before
    ended = call("experiment", study, "--out", tmp_path)
    assert (ended.code, "is not empty, and no experiment's folder" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("factor.0.key", "system.plna.latency", "system.plna: there is no such key"),
        ("factor.0.key", "measure.3.concurrency", "measure has no entry 3; it has 0 to 0"),
        ("factor.0.key", "study.seed", "study.seed cannot be varied"),
        ("factor.0.key", "measure.0.concurrency", "measure.0.concurrency is set by latency and sessions"),
        ("factor.1.levels", [1, "many"], "measure.0.concurrency"),
        ("factor.1.levels", [1, 1], "a level is there more than once"),
        ("factor.1.levels", [1], "levels"),
        (
            "factor.1.levels",
            [{"name": "one", "set": {"measure.0.concurrency": 1}}, 2],
            "levels are values of the key",
        ),
        ("factor.1.name", "latency", "the name 'latency' is there twice"),
        ("experiment.blocks", "cache", "there is no factor 'cache'; factors are latency, sessions"),
        ("experiment.scaling", "latency", "the levels of latency are not all numbers above 0"),
        ("experiment.logarithmic", ["cost"], "'cost' is no response of it; responses are tps"),
        ("experiment.responses", ["tps:read"], "'tps:read' is no response; responses are tps, goodput"),
        ("experiment.responses", ["speed"], "'speed' is no response; responses are tps, goodput"),
        ("experiment.design", "fractional", "a fractional design has 3 to 12 factors; there are 2"),
        ("experiment.resolution", 4, 'generators and resolution belong to design = "fractional"'),
        ("experiment.generators", {"x": ["latency"]}, "generators and resolution belong"),
        ("workload.scales", [1, 2], "workload.scales"),
        ("workload.prewarm", True, "workload.prewarm: the schema of tpcb has no section prewarm"),
        ("experiment.over", "latency", "experiment.over: the levels of latency are not all numbers above 0"),
        ("experiment.by", "latency", "experiment.by: it belongs to experiment.over"),
        ("reference", [REFERENCE], "reference: figures are drawn over a factor: experiment.over names it"),
        ("reference", [{**REFERENCE, "response": "cost"}], "reference.0.response: 'cost' is no response"),
        ("reference", [{**REFERENCE, "where": {"cache": "1"}}], "reference.0.where: 'cache' has no charts"),
        ("reference", [{**REFERENCE, "where": {"latency": "x"}}], "reference.0.where.latency: there is no"),
        ("reference", [{**REFERENCE, "points": [[1, 2, 3]]}], "reference.0.points.0"),
        ("reference", [{**REFERENCE, "points": [[1, -2]]}], "reference.0.points.0.1"),
    ],
)
def test_what_is_wrong_is_one_message_and_nothing_is_touched(
    tmp_path: Path, key: str, value: Any, message: str
) -> None:
    tables = experiment()
    put(tables, key.split("."), value, "test")
    ended = call("experiment", write_study(tmp_path, tables), "--out", tmp_path / "x")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not (tmp_path / "x").exists()


def test_a_wrong_level_is_named(tmp_path: Path) -> None:
    tables = experiment({**LATENCY, "levels": ["constant(2ms)", "constant(4)"]}, SESSIONS)
    ended = call("experiment", write_study(tmp_path, tables), "--out", tmp_path / "x")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert 'sim\'s latency cannot be "constant(4)"' in ended.err
    assert ended.err.endswith("(with latency constant(4), sessions 1)\n")


def test_a_run_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    servers = {
        "name": "server",
        "key": "system.rw",
        "levels": ["sim://?latency=constant(1ms)", "postgresql://reader:hidden-word@127.0.0.1:9/none"],
    }
    tables = sim_study(throughput(warmup="50ms", duration="100ms"), load={"interval": "50ms"})
    study = write_study(tmp_path, {**tables, "factor": [servers], "experiment": {"replicates": 2}})
    ended = call("experiment", study, "--out", tmp_path / "x")
    assert ended.code == 1
    assert ended.err.count("@127.0.0.1:9/none): ") == 4, "each is told when it fails, and at the end"
    assert "the same command runs again what is missing" in ended.err
    assert "2 of 4 runs are missing" in ended.out
    assert read_results(tmp_path / "x").missing == 2
    # The password of a level reaches no file and no message.
    written = [file.read_bytes() for file in (tmp_path / "x").rglob("*") if file.is_file()]
    assert all(b"hidden-word" not in text for text in (*written, ended.out.encode(), ended.err.encode()))
    assert call("experiment", study, "--out", tmp_path / "x", "--set", "study.seed=2").code == 2


def test_an_interrupted_experiment_goes_on(tmp_path: Path) -> None:
    study = write_study(tmp_path, experiment(SESSIONS, duration="3s", replicates=1))
    command = ("experiment", study, "--out", tmp_path / "x")
    with start(*command, cwd=tmp_path) as process:
        wait_for(
            lambda: list(tmp_path.glob("x/runs/*-planted-001/intervals.jsonl")), "the first run", process
        )
        process.send_signal(signal.SIGINT)
        ended = finish(process)
    assert ended.code == 1
    assert "interrupted by SIGINT; the same command goes on with run 1" in ended.err
    again = call(*command)
    assert (again.code, again.err.splitlines()[0].partition(":")[0]) == (0, "run 1 of 2")


def test_levels_may_set_several_keys(tmp_path: Path) -> None:
    scaling = {
        "name": "strategy",
        "levels": [
            {"name": name, "set": {"system.resources.vcores": vcores, "system.resources.nodes": nodes}}
            for name, vcores, nodes in (("vertical", 4, 1), ("horizontal", 2, 2))
        ],
    }
    study = write_study(tmp_path, experiment(scaling, replicates=1, responses=["cost"]))
    assert call("experiment", study, "--out", tmp_path / "x").code == 0
    found = read_results(tmp_path / "x")
    means = {found.experiment.label(t.treatment): t.means["cost"].mean for t in found.treatments}
    # Two nodes have the memory and storage twice, and the same vCores together.
    assert means["strategy horizontal"] > means["strategy vertical"] > 0


def test_the_knee_of_planted_capacities_is_found(tmp_path: Path) -> None:
    # 8 sessions of a system that serves so many at a time: beyond 4 vCores there is no more throughput.
    sizes = {
        "name": "size",
        "levels": [
            {
                "name": f"{vcores}",
                "set": {"system.plan.capacity": capacity, "system.resources.vcores": vcores},
            }
            for vcores, capacity in ((1, "1"), (2, "2"), (4, "4"), (8, "5"), (16, "5"))
        ],
    }
    study = experiment(sizes, duration="300ms", responses=["tps", "cost"])
    study["system"]["plan"]["latency"] = "constant(10ms)"
    study["measure"][0]["concurrency"] = [8]
    ended = call("experiment", write_study(tmp_path, study), "--out", tmp_path / "x")
    assert ended.code == 0, ended.err
    found = read_results(tmp_path / "x")
    assert found.experiment.label(found.knees["tps"].place) == "size 4"
    assert "knee" in ended.out
    page = (tmp_path / "x" / "report.html").read_text()
    assert "The knee is 3, size 4" in page
    # Sizes have names: nothing is said of a first and a last one.
    assert "deviation: a level&#39;s distance from the mean of all. With 95 % intervals" in page


def test_run_and_experiment_name_each_other(tmp_path: Path) -> None:
    study = write_study(tmp_path, experiment())
    ended = call("run", study, "--out", tmp_path / "runs")
    assert (ended.code, f"nephoscope experiment {study}" in ended.err) == (2, True)
    ended = call("experiment", write_study(tmp_path, sim_study(), "plain.toml"))
    assert (ended.code, "there is no [[factor]]: nephoscope run" in ended.err) == (2, True)
    ended = call("report", tmp_path / "runs")
    assert ended.code == 2


def test_a_damaged_experiment_is_one_message(tmp_path: Path) -> None:
    for text, message in (("{", "Invalid JSON"), ('{"format": 2}', "format: Input should be 1")):
        (tmp_path / "experiment.json").write_text(text)
        ended = call("report", tmp_path)
        assert (ended.code, message in ended.err) == (2, True), ended.err


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_page_draws_its_charts(tmp_path: Path) -> None:
    rows = {"name": "rows", "key": "workload.scale", "levels": [1, 2, 4]}
    study = experiment(SESSIONS, rows, replicates=2, objectives=["tps", "mean_ms"])
    assert call("experiment", write_study(tmp_path, study), "--out", tmp_path / "x").code == 0
    page = (tmp_path / "x" / "report.html").read_text()
    drawn, console = browse_page(page, "experiment", tmp_path, "--dump-dom")
    assert console == []
    charts = [f"{kind}-{of}" for kind in ("effects", "means") for of in ("tps", "p99-ms")]
    # A model of p99 may fall below 0 where one run stood still: then it has no surface.
    for chart in (*charts, "surface-tps", "front-tps-mean-ms", "boxes"):
        figure = drawn.partition(f'id="{chart}')[2].partition("</figure>")[0]
        assert "<svg" in figure or "<canvas" in figure or "<table" in figure, chart


def test_a_response_is_drawn_over_a_factor_beside_figures_of_others(tmp_path: Path) -> None:
    study = experiment(replicates=2, responses=["tps", "mean_ms"], over="sessions")
    study["reference"] = [
        REFERENCE,
        {**REFERENCE, "name": "slow ones", "where": {"latency": "constant(4ms)"}, "points": [[16, 230]]},
    ]
    written = write_study(tmp_path, study)
    ended = call("experiment", written, "--out", tmp_path / "x")
    assert ended.code == 0, ended.err
    found = read_results(tmp_path / "x")
    fast, slow = curves(found, "tps")
    assert [fast.title, slow.title] == [f"tps over sessions, latency constant({n}ms)" for n in (2, 4)]
    means = {tuple(found.experiment.levels(t.treatment).values()): t.means["tps"] for t in found.treatments}
    for chart, latency in ((fast, "constant(2ms)"), (slow, "constant(4ms)")):
        own = [means[latency, sessions] for sessions in ("1", "2")]
        line, points = chart.lines[:2]
        assert [x for x, _ in line.data] == [x for x, *_ in points.whiskers] == [1, 2]
        assert [y for _, y in line.data] == pytest.approx([mean.mean for mean in own], rel=1e-4)
        assert [end for _, *ends in points.whiskers for end in ends] == pytest.approx(
            [end for mean in own for end in mean.ci95 or ()], rel=1e-4
        )
    names = [[line.name for line in chart.lines if line.legend] for chart in (fast, slow)]
    assert names == [["tps", "reference: another's"], ["tps", "reference: another's", "reference: slow ones"]]
    assert slow.lines[-1].data == ((16, 230),)
    assert (fast.x.scale, slow.x.scale) == ("linear", "log2")
    assert "rank nothing here. another's: page 1; slow ones: page 1." in slow.note
    assert len(curves(found, "mean_ms")) == 2
    call("report", tmp_path / "x", "--tables", tmp_path / "tables")
    assert len((tmp_path / "tables" / "references.csv").read_text().splitlines()) == 4
    # One chart where a factor has lines.
    assert call("experiment", written, "--out", tmp_path / "y", "--set", "experiment.by=latency").code == 2
    study["reference"] = [REFERENCE]
    study["experiment"]["by"] = "latency"
    assert call("experiment", write_study(tmp_path, study), "--out", tmp_path / "y").code == 0
    (chart,) = curves(read_results(tmp_path / "y"), "tps")
    assert [line.name for line in chart.lines if line.legend] == [
        "latency constant(2ms)",
        "latency constant(4ms)",
        "reference: another's",
    ]
    assert chart.message.endswith("at sessions 2, latency constant(2ms).")


@pytest.mark.parametrize(
    "name", ["experiment", "cost-vs-performance", "thesis-matrix", "ring-strategies", "ring-replication"]
)
def test_the_studies_that_come_with_nephoscope_are_sound(name: str) -> None:
    plan, studies = plan_of(find_study(name))
    assert len(studies) == len(plan.runs) == len(plan.treatments) * plan.experiment.replicates
