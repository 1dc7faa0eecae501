from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from synthetic import MIXES, Law

from nephoscope.errors import InputError
from nephoscope.storage.distances import divergence, rhythm
from nephoscope.storage.models.base import training
from nephoscope.storage.models.files import load, save
from nephoscope.storage.models.mixture import MixtureIntensity, MixturePlacement
from nephoscope.storage.models.registry import RECIPES, missing, train

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.features import Features
    from nephoscope.storage.models.base import Model, Training

LAW = Law()
SMALL = {"trees": 20.0, "leaves": 256.0, "units": 8.0, "layers": 2.0, "steps": 20.0}
"""Settings with which the models of the extras are fitted fast."""


@pytest.fixture(scope="module")
def lower(runs: list[Features]) -> Training:
    """Give the runs below the highest level."""
    return training([run for run in runs if run.run.target_tps != 160])


@pytest.fixture(scope="module")
def mixture(lower: Training) -> Model:
    return train("mixture", lower)


def on_law(model: Model, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring rows over a model's cells to the cells of the law."""
    place = {cell: at for at, cell in enumerate(LAW.cells)}
    found = np.zeros((len(weights), len(LAW.cells)))
    found[:, [place[cell] for cell in model.cells]] = weights
    return found


def test_the_mixture_recovers_requests_a_transaction(mixture: Model) -> None:
    assert isinstance(mixture.intensity, MixtureIntensity)
    foreground, background = mixture.intensity.laws
    assert foreground.exponent == 1
    assert foreground.per_type == pytest.approx(LAW.per_transaction, rel=0.1)
    assert foreground.constant == pytest.approx(0, abs=5)
    # Background writes do not depend on the type.
    assert background(np.array([[50.0, 30, 20]])) == pytest.approx(
        LAW.means(np.array([50.0, 30, 20]))[1], rel=0.15
    )


def test_the_mixture_recovers_the_cells_of_each_type(mixture: Model) -> None:
    assert isinstance(mixture.placement, MixturePlacement)
    of_types = on_law(mixture, mixture.placement.parts[0, :3])
    for kind, truth in enumerate(LAW.z):
        alone = divergence(truth, of_types[kind])
        others = min(divergence(truth, of_types[other]) for other in range(3) if other != kind)
        assert alone < 0.1
        assert others > 10 * alone


@pytest.mark.parametrize("mix", MIXES)
def test_the_mixture_foretells_twice_the_tps(mixture: Model, mix: str) -> None:
    rates = 160 * np.array(MIXES[mix])
    mean, weights, _ = mixture.predict(rates)
    truth = LAW.means(rates)
    assert mean.sum() == pytest.approx(truth.sum(), rel=0.04)
    assert mean[1] == pytest.approx(truth[1], rel=0.15)
    found = on_law(mixture, weights)
    for stream in range(2):
        assert divergence(LAW.weights(rates)[stream], found[stream]) < 0.01


def test_the_mixture_foretells_bursts_at_twice_the_tps(mixture: Model) -> None:
    rates = 160 * np.array(MIXES["even"])
    random = np.random.default_rng(3)
    truth = [rhythm(LAW.course(rates, 60, random)[1].sum(axis=0)) for _ in range(60)]
    found = [rhythm(mixture.sample(rates, 60, seed).counts.sum(axis=0)) for seed in range(60)]
    assert np.mean([one.deviation for one in found]) == pytest.approx(
        np.mean([one.deviation for one in truth]), rel=0.15
    )
    assert np.mean([one.lag1 for one in found]) == pytest.approx(
        np.mean([one.lag1 for one in truth]), abs=0.15
    )
    ratio = np.mean([one.dispersion for one in found]) / np.mean([one.dispersion for one in truth])
    assert abs(np.log(ratio)) < 0.3


def test_requests_follow_a_given_course(mixture: Model) -> None:
    course = 60 * np.array(MIXES["even"])[:, None] * np.where(np.arange(120) % 40 < 20, 0.5, 1.5)
    counts = mixture.follow(course, seed=1).counts[0]
    high = counts[np.arange(120) % 40 >= 20].mean()
    low = counts[np.arange(120) % 40 < 20].mean()
    assert high / low == pytest.approx(3, rel=0.15)


def test_growth_below_proportion_is_found(runs: list[Features]) -> None:
    bent = [
        replace(
            run,
            y=run.y * (run.x.sum(axis=0).mean() / 100) ** -0.3,
            z=run.z * (run.x.sum(axis=0).mean() / 100) ** -0.3,
        )
        for run in runs
    ]
    learned = training([run for run in bent if run.run.target_tps != 160])
    held = [run for run in bent if run.run.target_tps == 160]
    model = train("mixture", learned)
    assert isinstance(model.intensity, MixtureIntensity)
    assert model.intensity.laws[0].exponent == pytest.approx(0.7, abs=0.1)
    off = [model.predict(run.x.mean(axis=1)).mean.sum() / run.y.sum(axis=0).mean() - 1 for run in held]
    assert np.mean(np.abs(off)) < 0.05


# --- every model ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=RECIPES)
def model(request: pytest.FixtureRequest, lower: Training) -> Model:
    name: str = request.param
    if absent := missing(name):
        pytest.skip(f"the extra {', '.join(absent)} is not installed")
    from nephoscope.storage.evaluating import of_model  # noqa: PLC0415

    return train(name, lower, of_model(name, SMALL))


RATES = 80 * np.array(MIXES["reading"])


def test_a_forecast_has_the_stated_shapes(model: Model) -> None:
    forecast = model.sample(RATES, 33, seed=1)
    assert forecast.counts.shape == (2, 33)
    assert forecast.counts.dtype == np.int64
    assert (forecast.counts >= 0).all()
    assert forecast.weights.shape == (2, len(forecast.cells))
    assert (forecast.weights >= 0).all()
    assert forecast.weights.sum(axis=1) == pytest.approx([1, 1])
    followed = model.follow(np.repeat(RATES[:, None], 17, axis=1), seed=1)
    assert followed.counts.shape == (2, 17)


def test_a_forecast_is_the_same_by_its_seed(model: Model) -> None:
    one, same = (model.sample(RATES, 50, seed=4).counts for _ in range(2))
    assert one.tolist() == same.tolist()


def test_a_saved_model_foretells_the_same(model: Model, tmp_path: Path) -> None:
    known = replace(model, origin={"view": "log", "segments": [[0, "a", 1]]}, patterns={"p": np.arange(3.0)})
    save(known, tmp_path / "model.npz")
    found = load(tmp_path / "model.npz")
    assert found.name == model.name
    assert found.types == model.types
    assert found.cells == model.cells
    assert found.origin == known.origin
    assert found.patterns["p"].tolist() == [0, 1, 2]
    assert found.write_bytes.relation.tolist() == model.write_bytes.relation.tolist()
    assert {key: kept.tolist() for key, kept in found.write_bytes.found.items()} == {
        key: kept.tolist() for key, kept in model.write_bytes.found.items()
    }
    ours, theirs = model.predict(RATES), found.predict(RATES)
    assert ours.cells == theirs.cells
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-7)
    assert model.sample(RATES, 30, 2).counts == pytest.approx(found.sample(RATES, 30, 2).counts, abs=1)


# --- files that are no models -----------------------------------------------------------------------------------


@pytest.fixture
def whole(mixture: Model, tmp_path: Path) -> Path:
    save(mixture, tmp_path / "whole.npz")
    return tmp_path / "whole.npz"


def changed(path: Path, **arrays: Any) -> Path:
    with np.load(path) as file:
        kept = {name: file[name] for name in file.files}
    kept.update({name.replace("__", "."): array for name, array in arrays.items()})
    np.savez(path, allow_pickle=True, **{name: array for name, array in kept.items() if array is not None})
    return path


@pytest.mark.parametrize(
    "arrays",
    [
        {"cells": None},
        {"cells": np.zeros((3, 2), np.int64)},
        {"intensity__means": np.zeros((1, 2))},
        {"intensity__lengths": np.array([-5, 5])},
        {"intensity__per_type": np.full((2, 3), np.nan)},
        {"placement__parts": None},
        {"placement__middle": np.array([-1.0])},
        {"rates": np.zeros((2, 9))},
        {"header": np.frombuffer(b"{", np.uint8)},
        {"header": np.frombuffer(b'{"format": 9}', np.uint8)},
        {"cells": np.array([object()])},
    ],
    ids=lambda arrays: next(iter(arrays)),
)
def test_a_damaged_model_is_refused_by_name(whole: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"whole\.npz: this is no whole model"):
        load(changed(whole, **arrays))


def test_bytes_that_are_lost_or_changed_are_noticed(whole: Path) -> None:
    content = whole.read_bytes()
    random = np.random.default_rng(5)
    for cut in random.integers(len(content), size=20):
        whole.write_bytes(content[: int(cut)])
        with pytest.raises(InputError, match=r"whole\.npz"):
            load(whole)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.getinfo("intensity.deviations.npy").header_offset + 200
    whole.write_bytes(content[:start] + bytes([content[start] ^ 0xFF]) + content[start + 1 :])
    with pytest.raises(InputError, match=r"whole\.npz"):
        load(whole)


def test_no_model_and_no_setting_are_named(lower: Training, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model"):
        load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="there is no model 'gan'; allowed: mixture"):
        train("gan", lower)
    with pytest.raises(InputError, match="constant has no setting 'trees'; allowed: none"):
        train("constant", lower, {"trees": 3})


def test_an_extra_that_is_missing_is_named(lower: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nephoscope.storage.models.registry.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'nephoscope\[neural,forest\]'"):
        train("paper", lower)


def test_a_run_without_transactions_teaches_nothing(runs: list[Features]) -> None:
    with pytest.raises(InputError, match="run 0 of the corpus has no transactions"):
        training([replace(runs[0], x=np.zeros_like(runs[0].x))])
    with pytest.raises(InputError, match="no run is left"):
        training([])
