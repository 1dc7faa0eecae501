"""What the Python fuzz targets in ``fuzz/`` call; the tests replay their seeds.

A target takes a folder to write into and any bytes, and raises where a promise is broken.
"""

from __future__ import annotations

import shutil
import tomllib
from typing import TYPE_CHECKING

from nephoscope.cards.board import read_board
from nephoscope.cards.card import read_card, text_of
from nephoscope.cards.page import TEMPLATE, build
from nephoscope.errors import InputError
from nephoscope.measuring.measurement import page_of
from nephoscope.report.page import render_with
from nephoscope.results.scores import scores_of, scores_or_why, scores_text
from nephoscope.store import FILES, StoredRun
from nephoscope.store.protocol import Selection
from nephoscope.store.writer import seal
from nephoscope.study.reading import make_study, read_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Target = Callable[[Path, bytes], None]

_FILE = b"\n=== "
"""Begins a line that names the next file of a run directory."""


def study(folder: Path, data: bytes) -> None:
    """A study is refused, or is the same when it is written out and read again."""
    path = folder / "study.toml"
    path.write_bytes(data)
    try:
        first = read_study(path)
    except InputError:
        return
    text = first.to_toml()
    again = make_study(tomllib.loads(text), "again")
    # Passwords of URLs are left out the first time.
    if first.system.model_dump() == again.system.model_dump():
        assert again == first
    assert again.to_toml() == text


def run_directory(folder: Path, data: bytes) -> None:
    """A run directory is refused with ``InputError``, or read, scored and reported; and sealing it changes nothing."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    _unpack(run, data)
    stored = _read(run)
    # A table that has its journal beside it was not written to its end: the journal is what counts.
    if stored is None or (run / FILES.intervals).exists() or (run / FILES.system).exists():
        return
    try:
        seal(run)
    except InputError:
        return
    assert _read(run) == stored


def card(folder: Path, data: bytes) -> None:
    """A card is refused with ``InputError``, or is the same when it is written out and read again, and has a board."""
    path = folder / "card.json"
    path.write_bytes(data)
    try:
        first, _ = read_card(path)
        board = read_board([path])
    except InputError:
        return
    assert render_with(TEMPLATE, build(board))
    text = text_of(first)
    path.write_text(text, encoding="utf-8")
    again, signed_again = read_card(path)
    assert again == first
    assert text_of(again) == text
    # Once we have written it, what is signed is the same ever after.
    path.write_text(text_of(again), encoding="utf-8")
    assert read_card(path)[1] == signed_again


def _unpack(run: Path, data: bytes) -> None:
    """Write the files that the bytes hold, each below a line with its name."""
    names = {name: name.encode() for name in vars(FILES).values()}
    for part in data.split(_FILE)[1:]:
        head, _, content = part.partition(b"\n")
        for name, encoded in names.items():
            if head == encoded:
                (run / name).write_bytes(content)


def _read(run: Path) -> list[object] | None:
    """Read everything that a run directory says; None where it is refused."""
    try:
        stored = StoredRun(run)
    except InputError:
        return None
    said: list[object] = [stored.name, repr(stored.manifest)]
    reads = (
        lambda: stored.study,
        lambda: repr(stored.scores),
        lambda: repr(stored.intervals.to_pylist()),
        lambda: repr(stored.system_metrics.to_pylist()),
        lambda: repr(stored.events),
        lambda: repr(stored.phases),
        stored.histogram,
        lambda: stored.histogram(Selection(phases=frozenset({0}), transaction="SELECT", kind="service")),
        lambda: stored.percentiles([(0.0, 1.0), (1.0, 5.0)], [50.0, 99.9, 100.0]),
        lambda: scores_text(scores_of(stored)),
        lambda: page_of(stored, scores_or_why(stored)),
    )
    for read in reads:
        try:
            said.append(read())
        except InputError as error:
            said.append(str(error))
    return said
