"""Where requests begin inside their segments: laws learned from captured runs, as arrays, and as the engine takes them.

A law says how likely a request goes on where the one before it in its segment ended, and else how many other pages of
the segment were accessed since its page was: an LRU stack, whose distances give the miss-ratio curve.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.storage import bursts
from nephoscope.storage.features import READ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.models.base import Model

    State = Mapping[str, NDArray[Any]]

OWN_LAW = 500
"""So many requests outside runs give a segment's reads or writes a law of their own; fewer share their relation's."""


DEFAULT_PAGE = 8192
PAGES = frozenset(2**power for power in range(9, 17))
"""The sizes that a page may have."""
SIZES_KEPT = 4096


def learn(
    corpus: Corpus, runs: Sequence[int], known: dict[int, Sequence[bursts.Bursts]] | None = None
) -> State:
    """Learn from runs; the same runs give the same.

    L laws, N of their distances, M segments: ``run``, (L, 4), the probabilities of going on by the nature of the page
    before; ``law``, ``bin``, ``kind`` and ``weight``, (N,); ``segments``, (M, 4), each with its number, its pages, and
    the laws of its reads and its writes (see the engine's ``Law``); ``page_bytes``, (1,): the size of most reads;
    ``read_bytes``: the sizes of reads, equally likely, at most 4,096; and
    what ``bursts.joined`` gives. ``known`` keeps what was learned of each run's bursts, for the next call.
    """
    found = [corpus.requests(run) for run in runs]
    known = {} if known is None else known
    for run, columns in zip(runs, found, strict=True):
        if run not in known:
            known[run] = bursts.of_run(columns)
    reads = np.sort(np.concatenate([np.zeros(0, np.uint32), *map(_reads, found)]))
    page = _page_of(reads)
    kept = min(len(reads), SIZES_KEPT)
    sizes = {
        "page_bytes": np.array([page]),
        "read_bytes": reads[(np.arange(kept) * len(reads)) // max(kept, 1)],
    }
    return {**_laws(corpus, found, page), **sizes, **bursts.joined([known[run] for run in runs])}


def located(model: Model, corpus: Corpus, patterns: State) -> Model:
    """Tell a model which corpus it comes from, and where requests begin inside the segments of this one.

    A model without a law of offsets keeps only the sizes of pages and reads.
    """
    segments = corpus.table("segments")
    listed = zip(*(segments[column].to_pylist() for column in ("segment", "name", "chunk")), strict=True)
    origin = {
        "view": corpus.meta.view,
        "segment_bytes": corpus.meta.segment_bytes,
        "source": corpus.meta.source,
        "segments": [list(one) for one in listed],
    }
    kept = {name: patterns[name] for name in _SIZES} if model.placement.any_page else patterns
    return replace(model, origin=origin, patterns=kept)


_SIZES = ("page_bytes", "read_bytes")


def _reads(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
    sizes: NDArray[np.uint32] = columns["bytes"][columns["operation"] == READ]
    return sizes


def _page_of(reads: NDArray[np.uint32]) -> int:
    if len(reads) == 0:
        return DEFAULT_PAGE
    sizes, counts = np.unique(reads, return_counts=True)
    size = int(sizes[counts.argmax()])
    return size if size in PAGES else DEFAULT_PAGE


def _laws(corpus: Corpus, found: Sequence[Mapping[str, NDArray[Any]]], page: int) -> State:
    counts = _engine.StoragePatternCounts(page)
    for columns in found:
        counts.run(*(columns[name].tobytes() for name in ("segment", "offset", "bytes", "operation")))
    counted = {
        name: np.frombuffer(column, np.uint64).astype(np.int64) for name, column in counts.counted().items()
    }
    segments = counted["segment"]
    first = counted["first"].reshape(len(segments), 2, -1)
    again = counted["again"].reshape(*first.shape, -1)
    runs_of = counted["runs"].reshape(len(segments), 2, -1, 2)
    table = corpus.table("segments")
    names = dict(zip(table["segment"].to_pylist(), table["name"].to_pylist(), strict=True))
    laws: list[tuple[NDArray[Any], NDArray[Any]]] = []
    of_segment = np.zeros((len(segments), 2), dtype=np.int64)
    relations = np.array([names.get(int(segment), "") for segment in segments])
    for relation in np.unique(relations):
        members = np.flatnonzero(relations == relation)
        for operation in range(2):
            enough = (again.sum(axis=-1) + first)[members, operation].sum(axis=1) >= OWN_LAW
            groups = [*([member] for member in members[enough]), members[~enough]]
            for group in groups:
                of_segment[group, operation] = len(laws)
                counts_of = (array[group, operation].sum(axis=0) for array in (again, first, runs_of))
                laws.append(_law(*counts_of))
    places = [distances.nonzero() for _, distances in laws]
    pages = np.minimum(counted["last_page"] + 1, max(corpus.meta.segment_bytes // page, 1))
    return {
        "run": np.array([run for run, _ in laws]).reshape(len(laws), -1),
        "law": np.repeat(np.arange(len(laws)), [len(place[0]) for place in places]),
        **{name: np.concatenate([place[at] for place in places]) for at, name in enumerate(("bin", "kind"))},
        "weight": np.concatenate(
            [distances[place] for (_, distances), place in zip(laws, places, strict=True)]
        ),
        "segments": np.column_stack([segments, pages, of_segment]),
    }


def _law(
    again: NDArray[np.int64], first: NDArray[np.int64], runs: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the probabilities of going on, and the weights of distances by kind of page; the last is that of a new page.

    The distance of a first access is only known to be at least the number of pages seen by then, so the weights are
    those of a life table (the actuarial form of Kaplan and Meier's estimate), and hold for runs of other lengths.
    """
    after = runs.sum(axis=1)
    run = np.divide(runs[:, 1], after, out=np.zeros(len(after)), where=after > 0)
    known = again.sum(axis=1)
    ended = known + first
    at_risk = ended[::-1].cumsum()[::-1] - first / 2
    hazard = np.divide(known, at_risk, out=np.zeros(len(known)), where=at_risk > 0)
    survives = np.concatenate([[1.0], np.cumprod(1 - hazard)])
    weights = np.zeros((len(known) + 1, again.shape[1]))
    of_kind = again / np.maximum(known, 1)[:, None]
    weights[:-1] = (survives[:-1] * hazard)[:, None] * of_kind
    weights[-1, 0] = survives[-1]
    return run, weights


def page_bytes(patterns: State) -> int:
    """Give the size of a page that patterns count in; the default where there are none."""
    return int(patterns["page_bytes"][0]) if "page_bytes" in patterns else DEFAULT_PAGE


def of_plan(patterns: State) -> dict[str, Any]:
    """Write patterns as the engine's plan has them; none where nothing was learned.

    Raises:
        InputError: they are damaged.

    """
    if not set(patterns) - set(_SIZES):
        return {"laws": [], "segments": []}
    try:
        laws: list[dict[str, Any]] = [{"run": run, "distances": []} for run in patterns["run"].tolist()]
        rows = zip(*(patterns[name].tolist() for name in ("law", "bin", "kind", "weight")), strict=True)
        for law, *distance in rows:
            laws[law]["distances"].append(distance)
        segments = [
            {"segment": segment, "pages": pages, "laws": of_segment}
            for segment, pages, *of_segment in patterns["segments"].tolist()
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"the patterns of the model are damaged: {error}") from error
    return {"laws": laws, "segments": segments}
