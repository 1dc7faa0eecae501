"""A table that grows: its planted end is found, and followed through segments that no run before had reached."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synthetic import PAGE, Made, write

from nephoscope.errors import InputError
from nephoscope.storage.corpus import CapturedRun
from nephoscope.storage.distances import cell_divergence
from nephoscope.storage.features import BINS, NEAR, READ, WRITE, Cell, features
from nephoscope.storage.models.base import training
from nephoscope.storage.models.files import load, save
from nephoscope.storage.models.growth import Growth, by_distance, fit_growth
from nephoscope.storage.models.registry import train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.features import Features
    from nephoscope.storage.models.base import Model

SEGMENT = 64 * PAGE
SECONDS, ORDERED, PAUSE = 20, 400, 20.0
"""Of a run: its length; how many bytes an order adds to the table; how many segments 1,000 pauses add."""
LEVELS, REPLICATES = (20.0, 40.0, 60.0), 8
CHUNKS = 16


def runs_of(*, grows: bool) -> Iterator[Made]:
    """Give runs: a third of the requests write at the end, a third up to half a segment before it, a third read."""
    random = np.random.default_rng(5)
    end = 1.7
    for number in range(len(LEVELS) * REPLICATES):
        tps = LEVELS[(number * 2) % len(LEVELS)]
        orders, looks = random.poisson(tps / 2, (2, SECONDS))
        count = 20 * int(orders.sum() + looks.sum())
        time = np.sort(random.integers(0, SECONDS * 10**6, count))
        moved = orders.sum() * ORDERED / SEGMENT if grows else 0.0
        now = end + moved * time / (SECONDS * 1e6)
        kind = random.integers(0, 3, count)
        place = np.choose(kind, [now, now - 0.5 * random.random(count), random.random(count) * 1.5])
        chunk = np.floor(place).astype(int)
        yield Made(
            CapturedRun(run=number, seconds=SECONDS, mix="even", target_tps=tps),
            {
                "time_us": time,
                "segment": chunk,
                "offset": (place - chunk) * SEGMENT // PAGE * PAGE,
                "operation": np.where(kind == 2, READ, WRITE),
            },
            {"order": orders, "look": looks},
        )
        end += moved + (PAUSE / 1000 if grows else 0.0)


def corpus_of(folder: Path, *, grows: bool) -> Corpus:
    names = ["orders"] * CHUNKS
    return write(folder, runs_of(grows=grows), names, range(CHUNKS), segment_bytes=SEGMENT)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Features]:
    corpus = corpus_of(tmp_path_factory.mktemp("growing") / "corpus", grows=True)
    return [features(corpus, run, corpus.types) for run in corpus.runs]


def apart(model: Model, run: Features) -> float:
    found = model.predict(run.x.mean(axis=1), run.run.run, SECONDS)
    return cell_divergence((run.cells, run.z.sum(axis=0)), (found.cells, found.mean @ found.weights))


def test_planted_growth_is_learned_and_followed(runs: list[Features]) -> None:
    held = runs[4:-1:3]
    learned = [run for run in runs if run not in held]
    model = train("mixture", training(learned))
    without = train("mixture", training([replace(run, near=None) for run in learned]))
    assert model.growth is not None
    assert without.growth is None
    # Orders alone move the end, by what was planted.
    place = {name: at for at, name in enumerate(model.types)}
    planted = ORDERED / SEGMENT
    assert model.growth.per_transaction[0, place["order"]] == pytest.approx(planted, rel=0.15)
    assert model.growth.per_transaction[0, place["look"]] < 0.15 * planted
    ours, theirs = (np.mean([apart(one, run) for run in held]) for one in (model, without))
    assert ours < 0.02
    assert ours < 0.3 * theirs, "the end is not followed better than by neighbours in time"


def test_the_end_moves_within_a_run_and_between_runs(runs: list[Features]) -> None:
    growth = fit_growth(training([*runs[:10], *runs[11:]]))
    assert growth is not None
    run, ends = runs[10], [np.array(one.near.ends[0]) for one in runs if one.near is not None]
    assert growth.ends_at(run.x.mean(axis=1), SECONDS, 10)[0] == pytest.approx(ends[10], abs=0.03)
    assert growth.ends_at(run.x.mean(axis=1), SECONDS, 9)[0] == pytest.approx(ends[9])
    last = growth.ends[-1, 0, 1]
    assert growth.ends_at(run.x.mean(axis=1), SECONDS, None)[0].tolist() == [last, last]
    beyond = growth.ends_at(run.x.mean(axis=1), SECONDS, len(runs) + 1)[0]
    assert last < beyond[0] < beyond[1]
    # Two neighbours that are not known share what the table has grown meanwhile.
    unknown = growth.ends_at(run.x.mean(axis=1), SECONDS, 9, 9)[0]
    assert ends[8][1] <= unknown[0] < unknown[1] <= ends[11][0]


def test_cells_by_distance_come_back_as_segments(runs: list[Features]) -> None:
    """With the ends that a run had, what was counted by distance is where it was, to the width of a bin."""
    data = training(runs)
    growth = fit_growth(data)
    assert growth is not None
    near = by_distance(data, growth.relations)
    assert near.z.sum() == data.z.sum()
    assert any(cell.segment >= NEAR for cell in near.cells)
    for place, run in enumerate(runs):
        cells, weights = growth.placed(near.cells, near.z[place], growth.ends[place])
        assert weights.sum() == pytest.approx(run.z.sum())
        assert cell_divergence((run.cells, run.z.sum(axis=0)), (cells, weights.sum(axis=0))) < 0.01


def test_what_does_not_grow_stays_as_it_was(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", grows=False)
    runs = [features(corpus, run, corpus.types) for run in corpus.runs]
    assert fit_growth(training(runs)) is None
    assert train("mixture", training(runs)).growth is None


def test_growth_is_kept_in_the_file_and_damage_is_refused(runs: list[Features], tmp_path: Path) -> None:
    model = train("mixture", training(runs))
    assert model.growth is not None
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    rates = runs[3].x.mean(axis=1)
    for at in (3.0, None):
        ours, theirs = model.predict(rates, at, SECONDS), again.predict(rates, at, SECONDS)
        assert ours.cells == theirs.cells
        assert ours.weights == pytest.approx(theirs.weights)
    assert all(cell.segment < NEAR for cell in model.sample(rates, 5, 1).cells)
    save(replace(model, growth=None), tmp_path / "without.npz")
    with pytest.raises(InputError, match="no growth says where"):
        load(tmp_path / "without.npz")
    state = model.growth.state()
    for name, array in {
        "ends": -state["ends"],
        "segments": np.full_like(state["segments"], -1),
        "relations": state["relations"] + 1,
    }.items():
        with pytest.raises(ValueError, match="growth"):
            Growth.restored({**state, name: array}, [Cell(NEAR + BINS - 1, 1)], len(model.types))
