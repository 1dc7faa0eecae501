"""A study of several scale factors: a run of each, and no run again that was measured to its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.errors import InputError
from nephoscope.measuring.measurement import run_study
from nephoscope.measuring.preparing import any_url
from nephoscope.measuring.series import measured_before, parts
from nephoscope.measuring.silence import Silence
from nephoscope.results.beside_paper import reasons
from nephoscope.scoring.definitions import PERFECT
from nephoscope.store import StoredRun
from nephoscope.study.packaged import find_study
from nephoscope.study.reading import make_study, read_study
from sample_studies import Tables, phases, sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

SHORT: Tables = {"duration": "200ms", "warmup": "0s"}
LOAD = phases({"concurrency": 1, "duration": "200ms"}, scales=[1])
SEVERAL = sim_study(throughput(**SHORT), LOAD, workload={"scales": [1, 2], "load": "always"})


def runs_in(folder: Path) -> dict[str, StoredRun]:
    found = [StoredRun(run) for run in sorted(folder.iterdir()) if not run.is_symlink()]
    return {run.folder.name.partition("-")[2]: run for run in found}


def test_each_scale_factor_has_a_run_with_what_is_measured_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the report of several runs is written where the command is given
    ended = call("run", write_study(tmp_path, SEVERAL), "--out", tmp_path / "runs")
    assert (ended.code, ended.err) == (0, "")
    runs = runs_in(tmp_path / "runs")
    assert list(runs) == ["planted-sf1", "planted-sf2"]
    assert [run.manifest["workload"]["scale"] for run in runs.values()] == [1, 2]
    measured = [[entry.evaluator for entry in make_study_of(run).measure] for run in runs.values()]
    assert measured == [["throughput", "load"], ["throughput"]]
    assert call("report", *(run.folder for run in runs.values())).code == 0


def make_study_of(run: StoredRun) -> Any:
    return read_study(run.folder / "study.toml")


def test_after_an_interruption_only_what_is_missing_is_measured(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, SEVERAL), tmp_path / "runs"
    assert call("run", study, "--out", out).code == 0
    first, second = (run.folder for run in runs_in(out).values())
    manifest = json.loads((second / "manifest.json").read_text())
    (second / "manifest.json").write_text(json.dumps(manifest | {"status": "interrupted"}))
    again = call("run", study, "--out", out, "--resume")
    assert again.code == 0
    assert again.err == f"planted-sf1 has been measured already: {first}\n"
    assert len([run for run in out.iterdir() if not run.is_symlink()]) == 3
    # All are whole now; another study of the same name is another study.
    whole = call("run", study, "--out", out, "--resume")
    assert [line.split()[0] for line in whole.err.splitlines()] == ["planted-sf1", "planted-sf2"]
    assert whole.out == ""
    (other, _) = parts(make_study(SEVERAL | {"study": {"name": "planted", "seed": 2}}, "test"))
    assert measured_before(other, out) is None


def test_a_damaged_run_is_measured_again(tmp_path: Path) -> None:
    (part, _) = parts(make_study(SEVERAL, "test"))
    outcome = run_study(part, tmp_path, Silence())
    assert measured_before(part, tmp_path) == outcome.folder
    (outcome.folder / "manifest.json").write_text("{")
    assert measured_before(part, tmp_path) is None


def test_a_study_of_one_scale_factor_is_itself() -> None:
    study = make_study(sim_study(), "test")
    assert parts(study) == [study]
    with pytest.raises(InputError, match="part by part"):
        run_study(make_study(SEVERAL, "test"), find_study("perfect").parent, Silence())


@pytest.mark.parametrize(
    ("workload", "entry", "said"),
    [
        ({}, {"scales": [1]}, "measure.0.scales: workload.scales does not say which scale factors there are"),
        (
            {"scales": [1], "load": "always"},
            {"scales": [3]},
            "measure.0.scales: 3 is not among workload.scales",
        ),
        ({"scales": [1, 2], "load": "always"}, {"scales": [1]}, "workload.scales: nothing is measured at 2"),
        ({"scales": [1, 2]}, {}, 'workload.scales: each loads its own data, which needs load = "always"'),
        ({"scales": [1, 1], "load": "always"}, {}, "workload.scales: a scale factor is there more than once"),
        ({"scales": [], "load": "always"}, {}, "workload.scales: "),
        ({"scales": [0], "load": "always"}, {}, "workload.scales.0: "),
    ],
)
def test_what_is_wrong_with_scale_factors_is_told(workload: Tables, entry: Tables, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make_study(sim_study(throughput(**entry), workload=workload), "test")
    assert said in str(caught.value)


def test_what_is_wrong_at_any_of_them_is_told_before_the_first_is_measured(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, SEVERAL | {"measure": [throughput(scales=[1]), throughput(mixes=["NONE"], scales=[2])]}
    )
    ended = call("run", study, "--out", tmp_path / "runs")
    assert ended.code == 2
    assert "NONE" in ended.err
    assert not (tmp_path / "runs").exists()


def test_cloudybench_is_the_papers_procedure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RW_URL", "postgresql://reader@localhost/none")
    monkeypatch.setenv("RO_URL", "postgresql://reader@localhost/none")
    study = read_study(find_study("cloudybench"))
    assert any_url(study).startswith("postgresql")
    small, middle, large = parts(study)
    assert [part.workload.scale for part in (small, middle, large)] == [1, 10, 100]
    assert [entry.evaluator for entry in large.measure] == ["throughput"]
    told = {name: reasons(name, small, study.system.resources) for name in PERFECT}
    # Nothing sets it apart but what the paper does not say, and what docs/metrics.md names.
    assert told.pop("E2") == ["the paper says neither the mix nor the concurrency"]
    assert told.pop("T") == ["the cost is that of all nodes, and the paper's of the tenants' alone"]
    assert told == {name: [] for name in told}
    assert reasons("P", large, study.system.resources) == []
    assert reasons("E1", large, study.system.resources) is None
