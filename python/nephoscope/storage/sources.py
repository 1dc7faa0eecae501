"""What is executed: runs of corpora, captured or generated, and requests at Poisson times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nephoscope.errors import InputError
from nephoscope.settings.units import describe_count
from nephoscope.storage.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import CapturedRun

POISSON = "poisson"
"""The name of a source that is made of the first: its mean rate and its requests, at Poisson times."""
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Source:
    """Requests to be executed."""

    name: str
    """What it is called in every output."""
    columns: Mapping[str, NDArray[Any]]
    """The requests as ``Corpus.requests`` gives them, in the order of their times."""
    seconds: float
    """How long they take as they were captured."""
    told: Mapping[str, Any]
    """Where they come from, for the run directory."""

    @property
    def native(self) -> dict[str, bytes]:
        """The columns as the engine takes them."""
        return {name: column.tobytes() for name, column in self.columns.items()}


def read_sources(words: Sequence[str], seconds: float | None, seed: int) -> list[Source]:
    """Read sources: ``FOLDER`` or ``FOLDER:RUN`` of a corpus, or ``poisson``.

    ``seconds`` is how much of each is taken; all, if left out.

    Raises:
        InputError: a source is wrong, or there is nothing to execute.

    """
    found: list[Source] = []
    for word in words:
        if word == POISSON:
            if not found:
                raise InputError(
                    "poisson has the rate and the requests of the first source: name that before"
                )
            source = poisson_of(found[0], seed)
        else:
            source = _cut(_read(word), seconds)
        if not len(source.columns["time_us"]):
            raise InputError(f"{word}: no request to execute")
        if source.name in {other.name for other in found}:
            raise InputError(f"{word} is given twice; --repetitions executes each source so often")
        found.append(source)
    return found


def _read(word: str) -> Source:
    path, number = _parsed(word)
    corpus = Corpus(path)
    run = _chosen(corpus, number, word)
    name = path.resolve().name + (f":{run.run}" if len(corpus.runs) > 1 else "")
    columns = corpus.requests(run.run)
    latency = np.asarray(columns["latency_us"], dtype=np.float32)
    told = {
        "corpus": str(path),
        "run": run.run,
        "view": corpus.meta.view,
        "mix": run.mix,
        "target_tps": run.target_tps,
    }
    last_us = int(columns["time_us"][-1]) if len(columns["time_us"]) else 0
    # A trace ends with its last request: the rest of that second is no time without requests.
    ends = corpus.meta.view == "trace" and last_us > 0
    seconds = (last_us + 1) / _SECOND_US if ends else float(run.seconds)
    return Source(name, {**columns, "latency_us": latency}, seconds, told)


def _parsed(word: str) -> tuple[Path, int | None]:
    folder, colon, number = word.rpartition(":")
    if not colon or Path(word).exists():
        return Path(word), None
    if not number.isdecimal():
        raise InputError(f"{word}: a source is a corpus, FOLDER or FOLDER:RUN, or {POISSON}")
    return Path(folder), int(number)


def _chosen(corpus: Corpus, number: int | None, word: str) -> CapturedRun:
    runs = corpus.runs
    if number is None and len(runs) == 1:
        return runs[0]
    for run in runs:
        if run.run == number:
            return run
    numbers = ", ".join(str(run.run) for run in runs[:20])
    if number is None:
        said = f"{describe_count(len(runs), 'run')}: say which, as in {word}:{runs[0].run if runs else 0}"
        raise InputError(f"{word} has {said} (there are {numbers})")
    raise InputError(f"{word}: there is no run {number}; there are {numbers}")


def _cut(source: Source, seconds: float | None) -> Source:
    if seconds is None:
        return source
    time = source.columns["time_us"]
    kept = (time >= 0) & (time < seconds * _SECOND_US)
    columns = {name: column[kept] for name, column in source.columns.items()}
    return Source(source.name, columns, min(seconds, source.seconds), {**source.told, "seconds": seconds})


def poisson_of(source: Source, seed: int) -> Source:
    """Make requests at Poisson times: as YCSB does, at the mean rate, each independent of those before it.

    Which requests they are is drawn from the source with replacement, so their cells, offsets and operations have the
    same distribution, and no order.
    """
    random = np.random.default_rng(seed)
    known = len(source.columns["time_us"])
    count = int(random.poisson(known)) if known else 0
    drawn = random.integers(0, max(known, 1), count)
    columns = {name: column[drawn] for name, column in source.columns.items()}
    columns["time_us"] = np.sort(
        random.integers(0, round(source.seconds * _SECOND_US), count, dtype=np.int64)
    )
    columns["latency_us"] = np.full(count, np.nan, dtype=np.float32)
    return Source(POISSON, columns, source.seconds, {"poisson": source.name, "seed": seed})
