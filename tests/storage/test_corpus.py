from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nephoscope.errors import InputError
from nephoscope.storage.corpus import OPERATIONS, PROCESSES, CapturedRun, Corpus, CorpusMeta, CorpusWriter
from nephoscope.storage.features import Cell, features

if TYPE_CHECKING:
    from pathlib import Path


def native(rows: list[tuple[int, int, int, int, str, str, float]]) -> dict[str, bytes]:
    kinds = {"time_us": "i8", "segment": "u4", "offset": "u8", "bytes": "u4"}
    columns = {
        name: np.array([row[at] for row in rows], kind).tobytes()
        for at, (name, kind) in enumerate(kinds.items())
    }
    columns["operation"] = np.array([OPERATIONS.index(row[4]) for row in rows], "u1").tobytes()
    columns["process"] = np.array([PROCESSES.index(row[5]) for row in rows], "u1").tobytes()
    columns["latency_us"] = np.array([row[6] for row in rows], "f4").tobytes()
    return columns


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a corpus of one run of two seconds."""
    run = CapturedRun(run=0, seconds=2, mix="all", weights={"pay": 1.0}, target_tps=10.0)
    with CorpusWriter(tmp_path / "corpus") as writer:
        rows = [
            (1_200_000, 4, 0, 9000, "write", "checkpointer", 7.5),
            (100, 3, 8192, 8192, "read", "backend", float("nan")),
            (1_999_999, 3, 0, 100, "write", "backend", 1.0),
            (1_999_999, 3, 0, 0, "sync", "backend", 900.0),
            (2_000_000, 3, 0, 8192, "read", "backend", 1.0),
        ]
        writer.requests(0, native(rows))
        writer.write(
            "transactions", {"run": [0, 0], "second": [0, 1], "type": ["pay", "pay"], "count": [9, 11]}
        )
        writer.write("segments", {"segment": [3, 4], "name": ["orders", "orders"], "chunk": [0, 1]})
        writer.finish(CorpusMeta(view="page", segment_bytes=16 * 2**20, runs=[run]))
    return tmp_path / "corpus"


def test_a_corpus_is_read_as_it_was_written(folder: Path) -> None:
    corpus = Corpus(folder)
    found = corpus.requests(0)
    assert found["time_us"].tolist() == [100, 1_200_000, 1_999_999, 1_999_999, 2_000_000]
    assert [OPERATIONS[place] for place in found["operation"]] == ["read", "write", "write", "sync", "read"]
    assert PROCESSES[found["process"][1]] == "checkpointer"
    assert np.isnan(found["latency_us"][0])
    assert found["latency_us"][1] == 7.5
    assert corpus.types == ["pay"]


def test_x_y_and_z_are_derived(folder: Path) -> None:
    corpus = Corpus(folder)
    found = features(corpus, corpus.runs[0], corpus.types)
    assert found.x.tolist() == [[9, 11]]
    assert found.y.tolist() == [[1, 1], [0, 1]]
    assert found.cells == [Cell(3, 0), Cell(3, 1), Cell(4, 9)]
    assert found.z.tolist() == [[1, 1, 0], [0, 0, 1]]
    assert {size: sizes.tolist() for size, sizes in found.write_bytes.items()} == {1: [100], 9: [9000]}


def test_a_corpus_that_is_not_whole_is_none(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "corpus"):
        pass
    with pytest.raises(InputError, match="no corpus"):
        Corpus(tmp_path / "corpus")


def test_what_is_there_is_not_written_over(folder: Path) -> None:
    with pytest.raises(InputError, match="there already"):
        CorpusWriter(folder)
