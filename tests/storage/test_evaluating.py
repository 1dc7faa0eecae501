from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.errors import InputError
from nephoscope.storage import evaluation_tables
from nephoscope.storage.evaluating import (
    FIGURES,
    REPLICATE,
    captured,
    errors,
    evaluate,
    foretold,
    splits,
    trained,
)
from nephoscope.storage.features import Cell
from nephoscope.storage.models.base import training
from nephoscope.storage.models.registry import train
from nephoscope.tables.model import markdown, write_tables

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.evaluating import Evaluation
    from nephoscope.storage.features import Features


@pytest.fixture(scope="module")
def evaluation(runs: list[Features]) -> Evaluation:
    return evaluate(runs, ["mixture"])


def test_the_highest_levels_and_each_mix_are_held_out_by_run(runs: list[Features]) -> None:
    found, reasons = splits(runs)
    assert not reasons
    assert [(split.kind, len(split.tested)) for split in found] == [("higher TPS", 6)] + [("new mix", 8)] * 3
    for split in found:
        assert sorted([*split.learned, *split.tested]) == list(range(len(runs)))
    assert {runs[at].run.target_tps for at in found[0].tested} == {160}
    assert {runs[at].run.mix for at in found[1].tested} == {"even"}
    assert found[0].held == "160 TPS of 20, 40, 80, 160"
    two, _ = splits(runs, levels=2, mix="writing")
    assert {runs[at].run.target_tps for at in two[0].tested} == {80, 160}
    assert [split.held for split in two[1:]] == ["writing"]


def test_what_cannot_be_held_out_is_said(runs: list[Features]) -> None:
    with pytest.raises(InputError, match="4 TPS levels cannot be held out of 4; allowed: 1 to 3"):
        splits(runs, levels=4)
    with pytest.raises(InputError, match="no mix 'none'; it has even, reading, writing"):
        splits(runs, mix="none")
    one_mix = [run for run in runs if run.run.mix == "even"]
    found, reasons = splits(one_mix)
    assert [split.kind for split in found] == ["higher TPS"]
    assert reasons == ["no forecast of a new mix: the corpus has one mix"]
    with pytest.raises(InputError, match="nothing can be held out"):
        splits([run for run in one_mix if run.run.target_tps == 20])


def test_levels_without_a_target_are_those_reached(runs: list[Features]) -> None:
    free = [
        replace(run, run=run.run.model_copy(update={"target_tps": None}))
        for run in runs
        if run.run.mix == "even"
    ]
    levels = training(free).levels
    assert len(set(levels.tolist())) == 4
    assert sorted(levels.tolist()) == levels.tolist()


def test_planted_errors_are_told(runs: list[Features]) -> None:
    run = runs[-1]
    truth = captured(run)
    same = errors(truth, truth)
    assert same.pop("miss_ratio") is None
    assert all(value in (0, pytest.approx(0, abs=0.002)) for value in same.values())
    twice = replace(run, y=2 * run.y)
    found = errors(truth, captured(twice))
    assert found["mean"] == pytest.approx(1)
    assert found["deviation"] == pytest.approx(1)
    assert found["dispersion"] == pytest.approx(np.log(2))
    assert found["lag1"] == pytest.approx(0)
    shuffled = errors(truth, captured(replace(run, y=np.random.default_rng(1).permuted(run.y, axis=1))))
    assert shuffled["lag1"] is not None
    assert shuffled["lag1"] > 0.2
    reads = np.array([cell.size_kb == 0 for cell in run.cells])
    fewer = errors(truth, captured(replace(run, z=run.z * np.where(reads, 0.5, 1))))
    share = truth.read_share
    assert fewer["read_share"] == pytest.approx(1 - 0.5 / (1 - 0.5 * share))
    doubled = {key: 2 * kept for key, kept in run.write_bytes.found.items()}
    larger = errors(truth, captured(replace(run, write_bytes=replace(run.write_bytes, found=doubled))))
    assert larger["write_bytes"] == pytest.approx(1)
    elsewhere = errors(
        truth, captured(replace(run, cells=[Cell(cell.segment + 1000, cell.size_kb) for cell in run.cells]))
    )
    assert elsewhere["divergence"] is not None
    assert elsewhere["divergence"] > 5


def test_the_mixture_is_near_the_floor_and_the_baselines_are_not(evaluation: Evaluation) -> None:
    assert evaluation.models == ["mixture", "constant", "poisson", "oracle", REPLICATE]
    for figure in ("mean", "divergence", "read_share"):
        ours, constant = (evaluation.error("higher TPS", name, figure) for name in ("mixture", "constant"))
        assert ours is not None
        assert constant is not None
        assert ours.mean < constant.mean / 2
        assert evaluation.holds("higher TPS", "mixture", figure)
        assert not evaluation.holds("higher TPS", "constant", figure)
    for name, most in (("oracle", 0.1), (REPLICATE, 0.25)):
        found = evaluation.error("higher TPS", name, "deviation")
        assert found is not None
        assert found.mean < most
    poisson = evaluation.error("higher TPS", "poisson", "deviation")
    assert poisson is not None
    assert poisson.mean > 0.5


def test_the_divergence_must_be_below_the_constants_too(evaluation: Evaluation) -> None:
    changed = [
        replace(one, errors={**one.errors, "divergence": 1e-6}) if one.model == "constant" else one
        for one in evaluation.tested
    ]
    assert not replace(evaluation, tested=changed).holds("higher TPS", "mixture", "divergence")


def test_a_fit_takes_seconds(evaluation: Evaluation) -> None:
    assert set(evaluation.fit_seconds) == {"mixture", "constant"}
    # Of the processor's time, so that a busy machine does not matter.
    assert evaluation.fit_seconds["mixture"] < 10


def test_tables_have_every_error(evaluation: Evaluation, tmp_path: Path) -> None:
    shown = markdown(evaluation_tables.shown(evaluation), evaluation_tables.notes(evaluation))
    for word in ("K-L of Z", "≤ 0.015", "replicate", "160 TPS of 20, 40, 80, 160 held out", "✓", "✗"):
        assert word in shown
    long = evaluation_tables.kept(evaluation)[0]
    assert len(long.rows) == 2 * len(evaluation.models) * len(FIGURES)
    assert {file.name for file in write_tables(evaluation_tables.kept(evaluation), tmp_path)} >= {
        "evaluation.csv",
        "held-out-runs.parquet",
    }
    json.dumps([dict(row) for row in long.rows], allow_nan=False)


def test_a_level_left_out_says_how_far_off_a_model_is(runs: list[Features], corpus: Corpus) -> None:
    model = trained("mixture", runs, None, corpus)
    assert model.known.errors.shape == (len(runs), 4)
    assert np.sqrt(np.mean(model.known.errors[:, 0] ** 2)) < 0.1
    assert model.origin["view"] == "log"
    assert model.origin["segments"][5] == [5, "table1", 1]
    assert not len(trained("constant", runs, None, corpus, validate=False).known.errors)
    with pytest.raises(InputError, match="oracle foretells only the run"):
        trained("oracle", runs, None, corpus)


def test_a_forecast_of_a_model_is_summed_up(runs: list[Features]) -> None:
    run = runs[-1]
    found = foretold(train("oracle", training([run])), run.x.mean(axis=1), 60)
    assert found.rhythm.mean == pytest.approx(run.y.sum(axis=0).mean())
    assert found.read_share == pytest.approx(captured(run).read_share, abs=0.02)
