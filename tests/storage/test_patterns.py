"""Patterns learned from streams whose locality is known give their miss-ratio curves again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from synthetic import drawn_anew, write_run

from nephoscope.errors import InputError
from nephoscope.storage.corpus import Corpus, native_columns
from nephoscope.storage.distances import curve_distance
from nephoscope.storage.generating import CoursePart, batches, captured, compose, plan
from nephoscope.storage.patterns import learn, of_plan
from nephoscope.storage.reuse import miss_ratio_curve

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

PAGE = 8192
PAGES = 2048
"""Of a segment."""
REQUESTS = 60_000
SECONDS = 20


def zipf(random: np.random.Generator, count: int, pages: int, exponent: float) -> NDArray[np.int64]:
    weights = 1 / np.arange(1, pages + 1) ** exponent
    return random.permutation(pages)[random.choice(pages, count, p=weights / weights.sum())]


def stream(name: str) -> NDArray[np.int64]:
    """Make the pages of a stream, numbered through all segments."""
    random = np.random.default_rng(5)
    turns = np.arange(REQUESTS)
    if name == "uniform":
        return random.integers(0, 4 * PAGES, REQUESTS)
    if name == "zipf":
        return zipf(random, REQUESTS, 6 * PAGES, 1.0)
    if name == "scan":
        return turns[: 4 * PAGES]
    if name == "loop":
        return turns % 1500
    if name == "extents":
        heads = 16 * zipf(random, REQUESTS // 16, 6 * PAGES // 16, 0.8)
        return np.asarray((heads[:, None] + np.arange(16)).ravel())
    loops = random.random(REQUESTS) < 0.3
    walk = np.cumsum(loops) % (2 * PAGES)
    return np.where(loops, walk, 2 * PAGES + zipf(random, REQUESTS, 6 * PAGES, 0.9))


def corpus_of(folder: Path, pages: NDArray[np.int64], writes: NDArray[np.bool_] | None = None) -> Corpus:
    count = len(pages)
    return write_run(
        folder,
        SECONDS,
        PAGES * PAGE,
        time_us=np.arange(count) * SECONDS * 1_000_000 // count,
        segment=pages // PAGES,
        offset=pages % PAGES * PAGE,
        operation=np.zeros(count) if writes is None else writes,
    )


def going_on(columns: Mapping[str, NDArray[Any]]) -> float:
    """Give the share of requests at the page behind the one before in their segment."""
    order = np.argsort(columns["segment"], kind="stable")
    segment, page = columns["segment"][order], columns["offset"][order].astype(np.int64) // PAGE
    return float(np.mean((segment[1:] == segment[:-1]) & (page[1:] == page[:-1] + 1)))


@pytest.mark.parametrize("name", ["uniform", "zipf", "scan", "loop", "extents", "mixed"])
def test_a_known_locality_comes_back(name: str, tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", stream(name))
    truth, made = corpus.requests(0), drawn_anew(corpus)
    assert len(made["offset"]) == len(truth["offset"])
    assert curve_distance(miss_ratio_curve(truth), miss_ratio_curve(made)) <= 0.05
    # A scan ends where its segment does, and a segment is drawn a little more often than it has pages, or less.
    assert abs(going_on(made) - going_on(truth)) < 0.02
    assert (made["offset"] < PAGES * PAGE).all()


def test_reads_and_writes_have_laws_of_their_own(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    writes = random.random(REQUESTS) < 0.5
    # Reads go through half of the pages in a loop, writes anywhere in the other half.
    pages = np.where(writes, 1024 + random.integers(0, 1024, REQUESTS), np.cumsum(~writes) % 1024)
    corpus = corpus_of(tmp_path / "corpus", pages, writes)
    run = {int(row[0]): row for row in learn(corpus, [0])["segments"].tolist()}
    assert run[0][2] != run[0][3]
    truth, made = corpus.requests(0), drawn_anew(corpus)
    assert curve_distance(miss_ratio_curve(truth), miss_ratio_curve(made)) <= 0.05


def test_a_law_holds_for_a_longer_run(tmp_path: Path) -> None:
    """A first access says only that a distance is at least so long; the law is none of a run's length."""
    pages = zipf(np.random.default_rng(2), 4 * REQUESTS, 6 * PAGES, 0.8)
    short = corpus_of(tmp_path / "short", pages[:REQUESTS])
    whole = corpus_of(tmp_path / "whole", pages)
    patterns = learn(short, [0])
    origin = replace(captured(whole, [CoursePart()]), patterns=patterns)
    forecasts, _ = compose(origin, [CoursePart()], 1)
    found = [native_columns(columns) for columns in batches(plan(origin, forecasts, 1))]
    made = {name: np.concatenate([columns[name] for columns in found]) for name in found[0]}
    assert curve_distance(miss_ratio_curve(whole.requests(0)), miss_ratio_curve(made)) <= 0.05


def test_without_a_law_any_page_is_as_likely_as_any_other(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", stream("loop"))
    origin = captured(corpus, [CoursePart()])
    forecasts, _ = compose(origin, [CoursePart()], 1)
    sizes = {name: origin.patterns[name] for name in ("page_bytes", "read_bytes")}
    for patterns in ({}, sizes):
        made = [
            native_columns(columns)
            for columns in batches(plan(replace(origin, patterns=patterns), forecasts, 1))
        ]
        pages = np.concatenate([columns["offset"] for columns in made]) // PAGE
        assert len(np.unique(pages)) > 0.99 * PAGES


@pytest.mark.parametrize("name", ["run", "law", "bin", "kind", "segments"])
def test_damaged_patterns_are_refused(name: str, tmp_path: Path) -> None:
    patterns = dict(learn(corpus_of(tmp_path / "corpus", stream("loop")), [0]))
    del patterns[name]
    with pytest.raises(InputError, match="damaged"):
        of_plan(patterns)
