"""Bursts that were planted come back in generated requests."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synthetic import SEGMENT_BYTES, drawn_anew, write_corpus, write_run

from commands import call
from nephoscope.errors import InputError
from nephoscope.storage import bursts
from nephoscope.storage.corpus import PROCESSES, Corpus, native_columns
from nephoscope.storage.evaluating import trained
from nephoscope.storage.features import features
from nephoscope.storage.generating import CoursePart, batches, compose, foreseen, plan
from nephoscope.storage.models.files import load, save

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

SECONDS = 60
SECOND_US = 1_000_000
TRANSACTIONS = 60
"""A second, in the foreground."""
WAIT_US = 200
"""The time of a service, in a queue whose waits are known."""


def planted(random: np.random.Generator, rate: float = TRANSACTIONS) -> dict[str, NDArray[Any]]:
    """Make transactions at Poisson times: 1 to 39 reads 10 to 90 µs apart, and a flush, two writes of one time.

    In the background 40 writes 5 µs apart, every half a second.
    """
    begins = random.integers(0, SECONDS * SECOND_US - 10_000, random.poisson(rate * SECONDS))
    reads = np.where(random.random(len(begins)) < 0.2, 39, random.integers(1, 10, len(begins)))
    sizes = reads + 2
    last = sizes.cumsum()
    gaps = random.integers(10, 90, sizes.sum())
    gaps[last - 1] = 0
    gaps[last - sizes] = 0
    since = gaps.cumsum()
    time = np.repeat(begins, sizes) + since - np.repeat(since[last - sizes], sizes)
    writes = np.arange(len(time)) >= np.repeat(last - 2, sizes)
    flushed = (np.arange(2 * SECONDS) * SECOND_US // 2)[:, None] + 5 * np.arange(40)
    whole = np.concatenate([time, flushed.ravel()])
    order = np.argsort(whole, kind="stable")
    process = np.repeat(
        [PROCESSES.index("backend"), PROCESSES.index("checkpointer")], [len(time), flushed.size]
    )
    operation = np.concatenate([writes, np.ones(flushed.size, bool)])
    return {"time_us": whole[order], "process": process[order], "operation": operation[order]}


def corpus_of(folder: Path, columns: Mapping[str, NDArray[Any]]) -> Corpus:
    return write_run(folder, SECONDS, SEGMENT_BYTES, **columns)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(tmp_path_factory.mktemp("bursts") / "corpus", planted(np.random.default_rng(4)))


def stream(columns: Mapping[str, NDArray[Any]], *, background: bool = False) -> NDArray[np.int64]:
    """Give the times of a stream."""
    found: NDArray[np.int64] = columns["time_us"][
        (columns["process"] != PROCESSES.index("backend")) == background
    ]
    return found


def sizes(time: NDArray[np.int64], limit: int = 500) -> NDArray[np.int64]:
    first = np.flatnonzero(np.diff(time, prepend=-SECOND_US) >= limit)
    return np.diff(first, append=len(time))


def furthest(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Give the largest distance of two distributions (Kolmogorov and Smirnov's)."""
    points = np.union1d(one, other)
    shares = (np.searchsorted(np.sort(each), points, side="right") / len(each) for each in (one, other))
    return float(np.abs(np.subtract(*shares)).max())


def waited(time: NDArray[np.int64], servers: int) -> float:
    """Give the p99 of the latency in a queue whose servers take ``WAIT_US`` for each request."""
    free = [0] * servers
    latency = []
    for due in time.tolist():
        end = max(heapq.heappop(free), due) + WAIT_US
        latency.append(end - due)
        heapq.heappush(free, end)
    return float(np.quantile(latency, 0.99))


@pytest.mark.parametrize("background", [False, True])
def test_planted_bursts_come_back(corpus: Corpus, *, background: bool) -> None:
    truth, made = (stream(found, background=background) for found in (corpus.requests(0), drawn_anew(corpus)))
    theirs, ours = (np.bincount(times // SECOND_US, minlength=SECONDS) for times in (truth, made))
    assert ours.tolist() == theirs.tolist()
    found = bursts.dispersions(made, SECONDS) / bursts.dispersions(truth, SECONDS)
    if background:
        # What came every half a second comes in each half of it.
        assert (found[:2] > 0.8).all()
        assert (found[:2] < 1.25).all()
        assert np.mean(sizes(made) == 40) > 0.9
    else:
        assert (found > 0.8).all()
        assert (found < 1.25).all()
        # A second's number cuts one of 60 bursts, and its end another; one of 40 begins by chance near another.
        assert furthest(sizes(truth), sizes(made)) < 0.05


def test_the_requests_of_a_flush_stay_together(corpus: Corpus) -> None:
    made = drawn_anew(corpus)
    own = made["process"] == PROCESSES.index("backend")
    time, operation = made["time_us"][own], made["operation"][own]
    together = np.diff(time) == 0
    # Each transaction has one pair of one time, and both are writes but where the drawn cells have fewer writes.
    assert together.sum() == pytest.approx(SECONDS * TRANSACTIONS, rel=0.1)
    assert operation[1:][together].mean() > 0.9
    assert operation[:-1][together].mean() > 0.9


@pytest.mark.parametrize("servers", [1, 4])
def test_a_queue_has_the_tail_that_it_had(corpus: Corpus, servers: int) -> None:
    truth = waited(corpus.requests(0)["time_us"], servers)
    assert waited(drawn_anew(corpus)["time_us"], servers) == pytest.approx(truth, rel=0.15)
    for arrivals in ("stratified", "poisson"):
        assert waited(drawn_anew(corpus, arrivals=arrivals)["time_us"], servers) < 0.5 * truth


@pytest.mark.parametrize("rate", [300, 1200])
def test_bursts_that_overlap_have_their_dispersions(tmp_path: Path, rate: int) -> None:
    """No gap tells transactions apart here: the longest of them take 2 ms."""
    truth = corpus_of(tmp_path / "corpus", planted(np.random.default_rng(4), rate))
    made = drawn_anew(truth)
    found = (bursts.dispersions(stream(columns), SECONDS) for columns in (made, truth.requests(0)))
    assert np.abs(np.log(np.divide(*found))).max() < 0.35


@pytest.mark.parametrize("arrivals", ["stratified", "poisson"])
def test_requests_that_come_alone_stay_alone(tmp_path: Path, arrivals: str) -> None:
    random = np.random.default_rng(2)
    count = SECONDS * 1000
    inside = (np.arange(count) + random.random(count)) * 1000
    if arrivals == "poisson":
        inside = np.sort(random.random(count)) * SECONDS * SECOND_US
    truth = corpus_of(tmp_path / "corpus", {"time_us": inside.astype(np.int64)})
    found = bursts.learn([truth.requests(0)])
    assert found["burst_laws"].tolist() == [[0, 0, bursts.STARTS.index(arrivals)]]
    assert (found["burst_size"] == 1).mean() > 0.98
    ratio = bursts.dispersions(drawn_anew(truth)["time_us"], SECONDS) / bursts.dispersions(
        truth.requests(0)["time_us"], SECONDS
    )
    assert np.abs(np.log(ratio)).max() < 0.3


def test_a_burst_is_never_longer_than_it_may_be() -> None:
    time = np.arange(0, 3 * SECOND_US, 20)
    columns = {
        "time_us": np.sort(np.concatenate([time, time + 1, time + 2])),
        "operation": np.zeros(3 * len(time), np.uint8),
        "process": np.ones(3 * len(time), np.uint8),
    }
    first = bursts._cut(columns["time_us"], 5000)
    ends = np.append(first[1:], len(columns["time_us"]))
    assert np.diff(first, append=len(columns["time_us"])).max() <= bursts.LARGEST
    assert (columns["time_us"][ends - 1] - columns["time_us"][first]).max() < bursts.LONGEST_US
    found = bursts.learn([columns])
    assert bursts.KEPT - bursts.LARGEST <= found["burst_size"].sum() <= bursts.KEPT
    assert found["burst_size"].sum() == len(found["burst_offset"]) == len(found["burst_write"])


def test_coarse_times_tell_no_bursts(corpus: Corpus, tmp_path: Path) -> None:
    columns = dict(corpus.requests(0))
    coarse = corpus_of(tmp_path / "corpus", {**columns, "time_us": columns["time_us"] // 1000 * 1000})
    assert (np.diff(drawn_anew(coarse)["time_us"]) == 0).mean() < 0.1
    done = call("storage", "generate", coarse.folder, "--arrivals", "bursts", "--out", tmp_path / "made")
    assert (done.code, "no bursts are known" in done.err.replace("\n", " ")) == (2, True)


@pytest.mark.parametrize(("options", "said"), [([], "bursts"), (["--arrivals", "stratified"], "stratified")])
def test_bursts_are_what_is_made_if_nothing_else_is_asked_for(
    corpus: Corpus, tmp_path: Path, options: list[str], said: str
) -> None:
    done = call("storage", "generate", corpus.folder, *options, "--out", tmp_path / "made")
    assert done.code == 0, done.err
    made = Corpus(tmp_path / "made")
    assert made.meta.source["generated"]["arrivals"] == said
    near = np.diff(stream(made.requests(0))) < 100
    assert (near.mean() > 0.5) == (said == "bursts")


def test_a_model_has_the_bursts_of_the_run_that_is_nearest(tmp_path: Path) -> None:
    levels = write_corpus(tmp_path / "corpus", levels=(40, 80), replicates=1, seconds=10)
    runs = [features(levels, run, levels.types) for run in levels.runs]
    save(trained("mixture", runs, None, levels, validate=False), tmp_path / "model.npz")
    model = load(tmp_path / "model.npz")
    for place, rates in enumerate(model.known.rates):
        assert model.sample(rates, 5, 1).nearest == place
        assert model.follow(np.repeat(rates[:, None], 5, axis=1), 1).nearest == place
    # Nearest to three times the highest rate is the run of that mix at the highest rate.
    highest = int(model.known.targets.argmax())
    assert model.sample(3 * model.known.rates[highest], 5, 1).nearest == highest


def test_each_part_has_the_bursts_of_its_run(corpus: Corpus, tmp_path: Path) -> None:
    levels = write_corpus(tmp_path / "corpus", levels=(40, 80), replicates=1, seconds=10)
    runs = [features(levels, run, levels.types) for run in levels.runs]
    model = trained("mixture", runs, None, levels, validate=False)
    patterns = bursts.learn([levels.requests(run) if run else corpus.requests(0) for run in range(6)])
    model.patterns.update(patterns)  # type: ignore[attr-defined]
    origin = foreseen(model)
    parts = [
        CoursePart(tps=str(rates.sum()), mix=mix, seconds=20)
        for rates, mix in zip(model.known.rates[:2], model.known.mixes, strict=False)
    ]
    forecasts, total = compose(origin, parts, 1)
    found = [native_columns(columns) for columns in batches(plan(origin, forecasts, 1))]
    time = stream({name: np.concatenate([columns[name] for columns in found]) for name in found[0]})
    near = np.diff(time) < 100
    assert total == 40
    assert near[time[1:] < 20 * SECOND_US].mean() > 0.5
    assert near[time[1:] >= 21 * SECOND_US].mean() < 0.2


@pytest.mark.parametrize("name", ["burst_law", "burst_size", "burst_offset", "burst_write"])
def test_damaged_bursts_are_refused(corpus: Corpus, name: str) -> None:
    patterns = dict(bursts.learn([corpus.requests(0)]))
    assert len(bursts.of_plan(patterns, [0, 1])) == 2
    patterns[name] = patterns[name][:-1]
    with pytest.raises(InputError, match="damaged"):
        bursts.of_plan(patterns, [0, 1])
    del patterns[name]
    with pytest.raises(InputError, match="damaged"):
        bursts.of_plan(patterns, [0])
