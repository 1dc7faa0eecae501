"""Sizes of writes: planted ones of each relation are kept apart, foretold at another mix, and generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from synthetic import Made, drawn_anew, write

from nephoscope.storage.corpus import CapturedRun
from nephoscope.storage.evaluating import captured, foretold
from nephoscope.storage.features import WRITE, Cell, features
from nephoscope.storage.models.base import training
from nephoscope.storage.models.registry import train

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Corpus

SECONDS = 30
BYTES = {"log": (100, 140), "rows": (700, 900)}
"""Between which numbers of bytes the writes of each relation lie: all are of the same size in KB."""
CHUNKS = 40
"""Segments of each relation."""
MIXES = ((0.9, 0.1), (0.6, 0.4), (0.3, 0.7))
"""Shares of ``note``, which writes to the log, and of ``change``, which writes rows."""


def run_of(number: int, mix: tuple[float, float], tps: int, random: np.random.Generator) -> Made:
    notes, changes = random.poisson(np.array(mix)[:, None] * tps, (2, SECONDS))
    is_row = random.permutation(np.repeat([0, 1], [notes.sum(), changes.sum()]))
    low, high = np.array([*BYTES.values()])[is_row].T
    count = len(is_row)
    return Made(
        CapturedRun(run=number, seconds=SECONDS, mix=str(mix), target_tps=float(tps)),
        {
            "time_us": np.sort(random.integers(0, SECONDS * 10**6, count)),
            "segment": random.integers(0, CHUNKS, count) + CHUNKS * is_row,
            "bytes": random.integers(low, high + 1),
            "operation": np.full(count, WRITE),
        },
        {"note": notes, "change": changes},
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    random = np.random.default_rng(8)
    settings = [(mix, tps) for mix in MIXES for tps in (20, 40, 60)] + [((0.0, 1.0), 50)]
    made = (run_of(number, *setting, random) for number, setting in enumerate(settings))
    names = [name for name in BYTES for _ in range(CHUNKS)]
    return write(tmp_path_factory.mktemp("sizes") / "corpus", made, names, [*range(CHUNKS)] * 2)


def within(sizes: NDArray[np.uint32], relation: str) -> bool:
    low, high = BYTES[relation]
    return bool(((sizes >= low) & (sizes <= high)).all())


def test_each_relation_has_its_own_sizes(corpus: Corpus) -> None:
    known = features(corpus, corpus.runs[0], corpus.types).write_bytes
    assert all(within(known.of(Cell(segment, 1)), "log") for segment in range(CHUNKS))
    assert all(within(known.of(Cell(CHUNKS + segment, 1)), "rows") for segment in range(CHUNKS))
    unknown = known.of(Cell(1000, 1))
    assert unknown.min() < BYTES["log"][1] < BYTES["rows"][0] < unknown.max()
    assert known.of(Cell(0, 3)).tolist() == [3 * 1024], "no write had it"
    assert known.pooled().of(Cell(0, 1)).tolist() == unknown.tolist()
    # Some 540 writes of 120 bytes and 60 of 800: the order of those that are kept says nothing of the mean.
    requests = corpus.requests(0)
    assert unknown.mean() == pytest.approx(requests["bytes"].mean(), rel=0.01)


def test_the_mean_at_another_mix_is_foretold(corpus: Corpus) -> None:
    *learned, held = [features(corpus, run, corpus.types) for run in corpus.runs]
    model = train("mixture", training(learned))
    found = foretold(model, held.x.mean(axis=1), SECONDS)
    truth = captured(held)
    assert truth.write_bytes == pytest.approx(800, rel=0.01)
    # Each segment has some twenty writes a run. What chance gave those of the log must not add up.
    assert found.write_bytes == pytest.approx(truth.write_bytes, rel=0.02)


def test_generated_writes_have_the_sizes_of_their_relations(tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    made = [run_of(0, (0.5, 0.5), 50, random)]
    one = write(tmp_path / "one", made, ["log"] * CHUNKS + ["rows"] * CHUNKS, [*range(CHUNKS)] * 2)
    found = drawn_anew(one)
    is_row = found["segment"] >= CHUNKS
    assert within(found["bytes"][is_row], "rows")
    assert within(found["bytes"][~is_row], "log")
    assert 0.4 < is_row.mean() < 0.6
