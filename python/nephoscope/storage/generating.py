"""Generates requests from what was foretold, or from captured runs: parts one after another, batch by batch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import read_toml
from nephoscope.settings.base import Settings
from nephoscope.settings.units import Duration, parse_duration
from nephoscope.storage import bursts
from nephoscope.storage.asking import asked, rate
from nephoscope.storage.corpus import TABLES
from nephoscope.storage.features import features
from nephoscope.storage.forecast import Forecast
from nephoscope.storage.models.base import shares
from nephoscope.storage.patterns import learn, of_plan, page_bytes
from nephoscope.storage.sizes import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from nephoscope.storage.corpus import (
        CapturedRun,
        Corpus,
    )
    from nephoscope.storage.features import Cell
    from nephoscope.storage.models.base import Model
    from nephoscope.storage.patterns import State

Arrivals = Literal["bursts", "stratified", "poisson"]
"""How the requests of a second lie in it: in bursts as captured, one in each n-th of it, or each anywhere."""

PROCESS: Sequence[str] = ("backend", "other")
"""Who makes the requests of each stream, in the order of ``features.STREAMS``."""

BATCH = 2**20
"""Requests that are in memory at a time, unless a second has more."""


class CoursePart(Settings):
    """A part of a course: transactions of one rate and mix for a while."""

    seconds: Duration | None = None
    """How long, in whole seconds, its transition included; of a captured run as long as that, if left out."""
    transition: Duration = 0.0
    """For how long at its beginning the part before it fades out, and this one in; 0 to change at once."""
    tps: Annotated[float, Field(gt=0)] | str | None = None
    """Transactions a second, or a multiple of what was captured: ``"2x"``; as captured, if left out."""
    mix: dict[str, float] | str | None = None
    """Shares of transactions; types that are not named share the rest as they did. Or the name of a captured mix."""
    run: Annotated[int, Field(ge=0)] | None = None
    """Of a corpus, the run that is taken."""


def part_of(text: str) -> CoursePart:
    """Read ``tps=20000,seconds=600,transition=60,new_order=0.6``: names that are no key are types of transactions.

    Raises:
        InputError: it is no such list, or a value is wrong.

    """
    values: dict[str, Any] = {}
    for word in text.split(",") if text else ():
        name, equals, value = word.partition("=")
        if not equals or name in values:
            raise InputError(f"a part is written as tps=20000,seconds=600, each key once, not as {text!r}")
        values[name] = value if name in ("tps", "mix") else _number(name, value)
    shares = {name: values.pop(name) for name in [*values] if name not in CoursePart.model_fields}
    if shares and "mix" in values:
        raise InputError(f"{text!r} has both a captured mix and shares; allowed: one of them")
    try:
        return CoursePart.model_validate({**values, **({"mix": shares} if shares else {})})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))} in {text!r}: {first['msg']}") from error


def _number(name: str, value: str) -> float:
    try:
        return int(value) if name == "run" else float(value)
    except ValueError:
        pass
    try:
        return parse_duration(value)
    except ValueError:
        raise InputError(f"{name}={value}: not a number that {name} can have") from None


class Course(Settings):
    """Several parts one after another: a day, a week (CDSBen section 4.5)."""

    part: Annotated[list[CoursePart], Field(min_length=1)]
    """The parts."""
    repeat: Annotated[int, Field(ge=1)] = 1
    """How often they come. The first part's transition holds from the second time on."""

    def parts(self) -> list[CoursePart]:
        """Give all parts in their order."""
        return self.part * self.repeat


def read_course(path: Path) -> Course:
    """Read a TOML file of parts. Raises ``InputError``."""
    try:
        return Course.model_validate(read_toml(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@dataclass(frozen=True)
class Origin:
    """What is generated from: where forecasts come from, and what the requests are pages of."""

    foretell: Callable[[CoursePart, int, int], Forecast]
    """Foretells a part of so many seconds (its own, and those in which it fades out) by a seed."""
    own_seconds: Callable[[CoursePart], int]
    """How long a part is that does not say it."""
    view: Literal["page", "log", "trace"]
    segment_bytes: int
    segments: Mapping[str, Any]
    """The segments that there are: columns as those of a corpus."""
    patterns: State
    """Where requests begin inside their segments, bursts, and the sizes of reads (see ``patterns.learn``)."""
    source: Mapping[str, Any]
    """What it is, for the corpus that is made."""


def told(parts: Sequence[CoursePart]) -> list[dict[str, Any]]:
    """Say what parts are, for the corpus that is made of them."""
    return [part.model_dump(mode="json", exclude_unset=True) for part in parts]


# --- where forecasts come from ------------------------------------------------------------------------------------


def foreseen(model: Model) -> Origin:
    """Let a trained model foretell the parts."""

    def foretell(part: CoursePart, seconds: int, seed: int) -> Forecast:
        if part.run is not None:
            raise InputError(f"run {part.run}: a model has no runs; allowed: --tps and --mix")
        mix = part.mix or {}
        words = [mix] if isinstance(mix, str) else [f"{name}={share}" for name, share in mix.items()]
        _, rates = asked(model, None if part.tps is None else str(part.tps), words)
        return model.sample(rates, seconds, seed)

    def own_seconds(_part: CoursePart) -> int:
        raise InputError("how long? A model needs --seconds, and seconds in each part")

    try:
        rows = model.origin["segments"]
        columns = {name: [row[at] for row in rows] for at, name in enumerate(TABLES["segments"].names)}
        source = {**model.origin["source"], "model": model.name}
        view, segment_bytes = model.origin["view"], int(model.origin["segment_bytes"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"the model does not say which corpus it was trained on: {error} is missing"
        ) from error
    return Origin(foretell, own_seconds, view, segment_bytes, columns, model.patterns, source)


def captured(corpus: Corpus, parts: Sequence[CoursePart], fallback: int | None = None) -> Origin:
    """Take captured runs as forecasts of themselves: what any model would do at best.

    A part's ``tps`` scales the counts of its run in proportion. A part longer than its run begins the run again.
    ``fallback`` is the run of parts that name none; the corpus's only one if left out. Patterns are learned from the
    runs of the parts.

    Raises:
        InputError: there is no such run.

    """
    runs = {run.run: run for run in corpus.runs}

    def run_of(part: CoursePart) -> CapturedRun:
        number = part.run if part.run is not None else fallback
        if number is None and len(runs) == 1:
            number = next(iter(runs))
        if number not in runs:
            said = "which run" if number is None else f"run {number}"
            raise InputError(f"{corpus.folder}: {said}? It has the runs {', '.join(map(str, runs))}")
        return runs[number]

    def foretell(part: CoursePart, seconds: int, _seed: int) -> Forecast:
        run = run_of(part)
        if part.mix is not None:
            raise InputError("a captured run has the mix that it has; another one needs a model")
        found = features(corpus, run, corpus.types)
        counts = found.y[:, np.arange(seconds) % run.seconds]
        if part.tps is not None:
            counts = counts * _multiple(str(part.tps), corpus, run, found.x)
        nearest = taken.index(run.run)
        return Forecast(whole(counts), found.cells, shares(found.z), found.write_bytes, nearest)

    taken = sorted({run_of(part).run for part in parts})
    learned = learn(corpus, taken)
    table = corpus.table("segments")
    columns = {name: table[name] for name in table.column_names}
    source = {**corpus.meta.source, "model": "captured runs"}
    view, segment_bytes = corpus.meta.view, corpus.meta.segment_bytes
    return Origin(foretell, lambda part: run_of(part).seconds, view, segment_bytes, columns, learned, source)


def _multiple(tps: str, corpus: Corpus, run: CapturedRun, x: NDArray[np.float64]) -> float:
    if tps.endswith("x"):
        return rate(tps, 1.0)
    achieved = x.sum() / run.seconds
    if not achieved:
        raise InputError(
            f"{corpus.folder}: run {run.run} has no transactions; allowed: a multiple such as --tps 2x"
        )
    return rate(tps, float(achieved)) / float(achieved)


def whole(means: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round means, (…, S), to whole numbers whose sums up to any second are nearest to those of the means."""
    sums = np.rint(np.cumsum(means, axis=-1)).astype(np.int64)
    return np.diff(sums, axis=-1, prepend=0)


# --- parts one after another --------------------------------------------------------------------------------------


def compose(origin: Origin, parts: Sequence[CoursePart], seed: int) -> tuple[list[Forecast], int]:
    """Foretell parts one after another; give a forecast for each, over all seconds, and how many these are.

    In a transition of d seconds the share of the part before falls in d even steps, and that of the new one rises.
    """
    lengths = [
        round(part.seconds) if part.seconds is not None else origin.own_seconds(part) for part in parts
    ]
    fades = [0, *(round(part.transition) for part in parts[1:])]
    for place, (length, fade) in enumerate(zip(lengths, fades, strict=True), 1):
        if length < max(fade, 1):
            raise InputError(
                f"part {place} has {length} s, and its transition {fade} s; a part has 1 s at least"
            )
    total, begin = sum(lengths), 0
    forecasts = []
    for place, (part, length, rise, fall) in enumerate(
        zip(parts, lengths, fades, [*fades[1:], 0], strict=True)
    ):
        own = origin.foretell(part, length + fall, seed + place)
        made = own.counts.copy()
        made[:, :rise] = whole(own.counts[:, :rise] * (np.arange(rise) + 0.5) / max(rise, 1))
        made[:, length:] = whole(own.counts[:, length:] * (1 - (np.arange(fall) + 0.5) / max(fall, 1)))
        counts = np.zeros((len(made), total), dtype=np.int64)
        counts[:, begin : begin + length + fall] = made
        forecasts.append(replace(own, counts=counts))
        begin += length
    return forecasts, total


def arrivals_of(origin: Origin, wanted: Arrivals | None) -> Arrivals:
    """Give what was wanted; if nothing was, bursts where they are known, and else ``stratified``.

    Raises:
        InputError: bursts are wanted, and none are known.

    """
    are_known = bool(bursts.known(origin.patterns))
    if wanted == "bursts" and not are_known:
        raise InputError(
            "no bursts are known: times are too coarse, or the model was trained before there were any; "
            "allowed: --arrivals stratified or poisson"
        )
    return wanted or ("bursts" if are_known else "stratified")


def plan(origin: Origin, forecasts: Sequence[Forecast], seed: int, arrivals: Arrivals | None = None) -> str:
    """Write the plan that the engine generates from (see its ``Plan``); for ``arrivals`` see :func:`arrivals_of`."""
    arrivals = arrivals_of(origin, arrivals)
    of_stream = bursts.known(origin.patterns) if arrivals == "bursts" else {}
    laws: dict[int, int] = {}
    cells: dict[Cell, int] = {}
    for forecast in forecasts:
        for cell in forecast.cells:
            cells.setdefault(cell, len(cells))
    of_cells, sizes = _sizes(origin, forecasts, list(cells))
    sources = []
    for forecast in forecasts:
        places = [cells[cell] for cell in forecast.cells]
        for stream, (process, counts) in enumerate(zip(PROCESS, forecast.counts, strict=True)):
            spread = np.zeros(len(cells))
            spread[places] = forecast.weights[stream]
            law = of_stream.get((forecast.nearest, stream))
            place = None if law is None else laws.setdefault(law, len(laws))
            source = {"process": process, "counts": counts.tolist(), "weights": spread.tolist()}
            sources.append({**source, "bursts": place})
    return json.dumps(
        {
            "seed": seed,
            "segment_bytes": origin.segment_bytes,
            "page_bytes": page_bytes(origin.patterns),
            "patterns": of_plan(origin.patterns),
            "arrivals": "stratified" if arrivals == "bursts" else arrivals,
            "bursts": bursts.of_plan(origin.patterns, list(laws)) if laws else [],
            "cells": [(*cell, place) for cell, place in zip(cells, of_cells, strict=True)],
            "sizes": sizes,
            "sources": sources,
        }
    )


def _sizes(
    origin: Origin, forecasts: Sequence[Forecast], cells: Sequence[Cell]
) -> tuple[list[int | None], list[list[int]]]:
    """Give each cell the place of its sizes in bytes, None for a read of a page; and the sizes that there are."""
    # Forecasts of one model have the same.
    known = merged([*{id(one.write_bytes): one.write_bytes for one in forecasts}.values()])
    reads = np.asarray(origin.patterns.get("read_bytes", ()), dtype=np.int64)
    places: dict[tuple[int, int] | None, int] = {}
    found: list[list[int]] = []

    def place(cell: Cell) -> int | None:
        if not cell.size_kb and not len(reads):
            return None
        key = known.key(cell) if cell.size_kb else None
        if key not in places:
            places[key] = len(found)
            found.append((known.of(cell) if cell.size_kb else reads).tolist())
        return places[key]

    return [place(cell) for cell in cells], found


def batches(plan: str, threads: int = 1, most: int = BATCH) -> Iterator[dict[str, bytes]]:
    """Generate requests in whole seconds of ``most`` requests together, as the engine gives columns."""
    generator = _engine.StorageGenerator(plan, threads)
    while (columns := generator.next(most)) is not None:
        yield columns
