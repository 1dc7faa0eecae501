"""Traces of other tools: of planted requests, and of real tools where they are installed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import call
from nephoscope.errors import InputError
from nephoscope.settings.units import parse_bytes
from nephoscope.storage.corpus import OPERATIONS, PROCESSES, Corpus
from nephoscope.storage.features import features
from nephoscope.storage.importing import LINE_FORMATS, How, Slice, import_traces
from nephoscope.storage.trace_columns import parse_columns

MSR = """\
128166372003061629,hm,0,Read,383496192,32768,113736
128166372016382155,hm,1,Write,2181111808,4096,23045
128166372026382245,hm,1,Write,2205503488,4096,5910
"""
CSV = "ts,lba,size,op,disk\n1.5,8,512,R,a\n4.25,40000,1024,w,b\n0.5,0,0,sync,a\n"
COLUMNS = "time=ts*1000000,offset=lba*512,bytes=size,operation=op,name=disk"


def made(tmp_path: Path, text: str, how: How, name: str = "trace.txt") -> Corpus:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    import_traces([str(tmp_path / name)], tmp_path / "corpus", how)
    return Corpus(tmp_path / "corpus")


def rows(corpus: Corpus, run: int = 0) -> list[tuple[object, ...]]:
    """Give the requests of a run: time, name, offset from its beginning, bytes, operation."""
    segments = corpus.table("segments").to_pydict()
    found = corpus.requests(run)
    return [
        (
            int(found["time_us"][at]),
            segments["name"][found["segment"][at]],
            segments["chunk"][found["segment"][at]] * corpus.meta.segment_bytes + int(found["offset"][at]),
            int(found["bytes"][at]),
            OPERATIONS[found["operation"][at]],
        )
        for at in range(len(found["time_us"]))
    ]


def test_each_file_is_a_run_and_segments_are_shared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(MSR)
    (tmp_path / "b.gz").write_bytes(gzip.compress(MSR[: MSR.index("\n") + 1].encode()))
    (tmp_path / "x.csv").write_text("run,second,type,count\n0,0,pay,7\n1,0,buy,9\n")
    how = How(transactions=tmp_path / "x.csv", segment_bytes=2**20)
    first, second = import_traces([str(tmp_path / "a.csv"), str(tmp_path / "b.gz")], tmp_path / "corpus", how)
    assert (first.format, first.requests, first.seconds) == ("msr", 3, 3)
    assert (second.requests, second.seconds) == (1, 1)
    corpus = Corpus(tmp_path / "corpus")
    assert corpus.meta.view == "trace"
    assert rows(corpus) == [
        (0, "hm_0", 383496192, 32768, "read"),
        (1332053, "hm_1", 2181111808, 4096, "write"),
        (2332062, "hm_1", 2205503488, 4096, "write"),
    ]
    assert rows(corpus, 1) == [(0, "hm_0", 383496192, 32768, "read")]
    assert corpus.table("segments").num_rows == 3
    assert corpus.requests(0)["latency_us"].tolist() == pytest.approx([11373.6, 2304.5, 591.0])
    found = features(corpus, corpus.runs[0], corpus.types)
    assert found.types == ["buy", "pay"]
    assert found.x.tolist() == [[0, 0, 0], [7, 0, 0]]
    assert found.y.tolist() == [[1, 1, 1], [0, 0, 0]], "a request is missing"


SECONDS = "at,place,size,op\n0.5,0,1,r\n0.9,1,1,r\n1.6,2,1,r\n2.499999,3,1,w\n2.5,4,1,w\n4.5,5,1,r\n"


@pytest.mark.parametrize(
    ("part", "places", "seconds"),
    [
        (Slice(), [0, 1, 2, 3, 4, 5], 5),
        (Slice(1), [2, 3, 4, 5], 4),
        (Slice(1, 2), [2, 3], 1),
        (Slice(0, 3), [0, 1, 2, 3, 4], 3),
        (Slice(2, 9), [4, 5], 3),
    ],
)
def test_a_part_of_a_trace(tmp_path: Path, part: Slice, places: list[int], seconds: int) -> None:
    (tmp_path / "x.csv").write_text("run,second,type,count\n" + "".join(f"0,{s},pay,{s}\n" for s in range(5)))
    columns = parse_columns("time=at*1000000,offset=place,bytes=size,operation=op")
    how = How(format="csv", columns=columns, transactions=tmp_path / "x.csv", part=part)
    corpus = made(tmp_path, SECONDS, how)
    assert [row[2] for row in rows(corpus)] == places
    assert rows(corpus)[0][0] == {0: 0, 1: 100_000, 2: 0}[part.start_s]
    assert corpus.runs[0].seconds == seconds
    found = features(corpus, corpus.runs[0], corpus.types)
    assert found.y.sum() == len(places)
    assert found.x[0].tolist() == list(range(part.start_s, part.start_s + seconds))


def test_the_part_is_told_in_whole_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(MSR)
    for options, wrong in (
        (["--from", "1500ms"], "--from 1500ms: whole seconds alone"),
        (["--to", "soon"], "--to soon: expected a length of time"),
        (["--from", "1m", "--to", "60s"], "--to 60s: a time behind --from 1m"),
        (["--from", "3s"], "no request is in this part of it; it lasts 2.33206 s"),
    ):
        refused = call("storage", "import", tmp_path / "a.csv", tmp_path / "corpus", *options)
        assert (refused.code, wrong in " ".join(refused.err.split())) == (2, True), refused.err
    done = call("storage", "import", tmp_path / "a.csv", tmp_path / "corpus", "--from", "1s", "--to", "2s")
    assert "(msr): 1 requests in 1 s" in done.out, done.err


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_named_columns(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"trace.{kind}"
    if kind == "parquet":
        table = {
            "ts": [1.5, 4.25, 0.5],
            "lba": [8, 40000, 0],
            "size": [512, 1024, 0],
            "op": ["R", "w", "sync"],
        }
        pq.write_table(pa.table({**table, "disk": ["a", "b", "a"]}), path)
    else:
        path.write_bytes(CSV.encode() if kind == "csv" else gzip.compress(CSV.encode()))
    how = How(format=kind.split(".", maxsplit=1)[0], columns=parse_columns(COLUMNS))
    import_traces([str(path)], tmp_path / "corpus", how)
    assert rows(Corpus(tmp_path / "corpus")) == [
        (0, "a", 0, 0, "sync"),
        (1_000_000, "a", 4096, 512, "read"),
        (3_750_000, "b", 20_480_000, 1024, "write"),
    ]


def test_columns_of_other_types_and_units(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([1_577_808_000_123_456_000, 1_577_808_000_123_458_999], pa.timestamp("ns")),
            "offset": pa.array([0, 2**40], pa.uint64()),
            "kb": [0.5, 4.0],
            "op": pa.array(["READ", "Write"]).dictionary_encode(),
            "took_ns": pa.array([None, 2500]),
        }
    )
    pq.write_table(table, tmp_path / "disk7.parquet")
    columns = parse_columns("time=when,offset=offset,bytes=kb*1024,operation=op,latency=took_ns/1000")
    import_traces([str(tmp_path / "disk7.parquet")], tmp_path / "corpus", How(columns=columns))
    corpus = Corpus(tmp_path / "corpus")
    assert rows(corpus) == [(0, "disk7", 0, 512, "read"), (2, "disk7", 2**40, 4096, "write")]
    latency = corpus.requests(0)["latency_us"]
    assert np.isnan(latency[0])
    assert latency[1] == 2.5


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (CSV + "9,1x,512,R,a\n", "line 5: offset, column lba, is `1x` (allowed: numbers"),
        (CSV + "-9,1,512,R,a\n", "line 5: time, column ts, is `-9`"),
        (CSV + "9,1,512,Q,a\n", "line 5: operation, column op, is `Q` (allowed: read, write"),
        (CSV + "9,1,0.25,R,a\n", "line 5: bytes, column size, is `0.25` (allowed: whole numbers of bytes)"),
        (CSV + "9,1,512,R,\n", "line 5: name, column disk, is `` (allowed: any text)"),
        (CSV + "9,99999999999999999,512,R,a\n", "line 5: offset, column lba, is `99999999999999999`"),
        (CSV + "9,1,4294967296,R,a\n", "line 5: a request of 4294967296 bytes"),
        (CSV + "99999999999,1,1,R,a\n", "line 5: its time"),
        (CSV + "9,1,512\n", "#5"),
        ("ts,lba\n1,2\n", "size"),
    ],
)
def test_a_wrong_row_is_reported_with_its_line(tmp_path: Path, text: str, wrong: str) -> None:
    how = How(format="csv", columns=parse_columns(COLUMNS))
    with pytest.raises(InputError) as refused:
        made(tmp_path, text, how)
    assert wrong in str(refused.value)
    assert not (tmp_path / "corpus" / "corpus.json").exists()


def test_a_column_of_processes(tmp_path: Path) -> None:
    columns = parse_columns("time=at,offset=at,bytes=at,operation=op,process=who")
    corpus = made(
        tmp_path, "at,op,who\n1,r,Checkpointer\n2,w, backend\n3,w,unknown\n", How("csv", (), columns)
    )
    assert [PROCESSES[at] for at in corpus.requests(0)["process"]] == ["checkpointer", "backend", "unknown"]
    with pytest.raises(
        InputError, match=r"line 2: process, column who, is `postgres` \(allowed: unknown, back"
    ):
        made(tmp_path / "other", "at,op,who\n1,r,postgres\n", How("csv", (), columns))


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ("time=ts", "offset, bytes, operation missing"),
        ("time=ts*x", "expected FIELD=COLUMN"),
        ("size=ts", "size is no field (allowed: time, offset, bytes"),
        ("time=a,time=b", "time is there twice"),
        ("operation=op*2", "a number above 0 for bytes, latency, offset, time alone"),
        ("time=ts/0", "a number above 0"),
    ],
)
def test_columns_are_a_strict_language(columns: str, wrong: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_columns(columns)
    assert wrong in str(refused.value)


@pytest.mark.parametrize(
    ("text", "how", "wrong"),
    [
        (MSR + "128166372026382245,hm,1,Rite,1,2,3\n", How(), "line 4: the operation is `Rite`"),
        ("1,2,3,0,5\n", How(), "its format is not certain: name it by --format (blkparse, fio"),
        (MSR, How(format="zfs"), "no trace format `zfs` (allowed: blkparse"),
        (MSR, How(options=[("event", "queue")]), "the format msr has no option `event`"),
        (MSR, How(columns=parse_columns(COLUMNS)), "the format msr has no named columns"),
        (MSR, How(format="csv"), "the format csv needs --columns"),
        (MSR, How(segment_bytes=100), "a segment of 100 bytes (allowed: 4096 or more)"),
        ("fio version 3 iolog\n", How(), "no request is in it"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, text: str, how: How, wrong: str) -> None:
    with pytest.raises(InputError) as refused:
        made(tmp_path, text, how)
    assert wrong in str(refused.value)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("second,run,type,count\n", "line 1: the columns are not run,second,type,count"),
        ("run,second,type,count\n1,0,pay,1\n", "line 2: the run is `1` (allowed: whole numbers below 1)"),
        ("run,second,type,count\n0,0,pay,1\n0,-1,pay,1\n", "line 3: the second is `-1`"),
        ("run,second,type,count\n0,0,,1\n", "line 2: expected run,second,type,count"),
    ],
)
def test_wrong_transactions_are_reported_with_their_line(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        made(tmp_path, MSR, How(transactions=tmp_path / "x.csv"))
    assert wrong in str(refused.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for how in (How(), How(format="msr"), How(format="csv", columns=parse_columns(COLUMNS))):
        with pytest.raises(InputError, match="nothing"):
            import_traces([str(tmp_path / "nothing.txt")], tmp_path / "corpus", how)


def test_sizes_of_segments() -> None:
    assert [parse_bytes(text) for text in ("16MiB", "8 KiB", "2GB", "512")] == [2**24, 2**13, 2 * 10**9, 512]
    for wrong in ("", "MiB", "16 M", "-1", "1.5GiB", "16mib", "1" * 20):
        with pytest.raises(ValueError, match="expected a size"):
            parse_bytes(wrong)


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (MSR, ["--format", "msr", "--segment", "1MiB"], "run 0: - (msr): 3 requests in 3 s"),
        (CSV, ["--format", "csv", "--columns", COLUMNS], "run 0: - (csv): 3 requests in 4 s"),
    ],
)
def test_standard_input_is_a_trace(tmp_path: Path, text: str, options: list[str], told: str) -> None:
    command = [sys.executable, "-c", "from nephoscope.cli.app import main; main()", "storage", "import", "-"]
    command += [str(tmp_path / "corpus"), *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert told in done.stdout
    assert len(rows(Corpus(tmp_path / "corpus"))) == 3


def test_every_format_is_in_the_page_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "storage" / "trace.md").read_text()
    for name in LINE_FORMATS:
        assert f"`{name}`" in page


PLANTED = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for at in range(200):
    os.pwrite(fd, b"x" * 8192, at * 8192)
    if at % 10 == 9:
        os.fdatasync(fd)
for at in range(100):
    os.pread(fd, 4096, at * 16384)
os.pread(fd, 10, 1 << 30)
os.preadv(fd, [bytearray(512), bytearray(512)], 1024)
child = os.fork()
os.pwrite(fd, b"both", 0)
os.fsync(fd)
if child:
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_strace_prints_of_planted_calls(tmp_path: Path) -> None:
    data, trace = tmp_path / "data, file", tmp_path / "trace"
    command = [
        "strace",
        "-f",
        "-ttt",
        "-T",
        "-y",
        "-e",
        "trace=pread64,pwrite64,preadv,preadv2,pwritev,pwritev2,fsync,fdatasync",
    ]
    program = [sys.executable, "-c", PLANTED, str(data)]
    done = subprocess.run([*command, "-o", str(trace), *program], capture_output=True, text=True, check=False)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    (imported,) = import_traces([str(trace)], tmp_path / "corpus", How())
    assert imported.format == "strace"
    corpus = Corpus(tmp_path / "corpus")
    found = [row for row in rows(corpus) if row[1] == str(data)]
    writes = [row[2:4] for row in found if row[4] == "write"]
    assert writes == [(at * 8192, 8192) for at in range(200)] + [(0, 4)] * 2
    reads = [row[2:4] for row in found if row[4] == "read"]
    assert reads == [(at * 16384, 4096) for at in range(100)] + [(1024, 1024)]
    assert sum(row[4] == "sync" for row in found) == 22
    assert imported.left_out["calls that moved no byte"] >= 1
    assert (corpus.requests(0)["latency_us"] >= 0).all()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_what_fio_logs_of_its_own_requests(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    job = ["--name=job", f"--filename={data}", "--size=4M", "--bs=4k", "--rw=randrw", "--rwmixread=70"]
    job += ["--ioengine=psync", "--randseed=7", f"--write_iolog={log}", "--output-format=json"]
    done = subprocess.run(["fio", *job], capture_output=True, text=True, check=True, cwd=tmp_path)
    told = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    (imported,) = import_traces([str(log)], tmp_path / "corpus", How())
    assert imported.format == "fio"
    found = [row for row in rows(Corpus(tmp_path / "corpus")) if row[1] == str(data)]
    for operation in ("read", "write"):
        ours = [row for row in found if row[4] == operation]
        assert len(ours) == told[operation]["total_ios"] > 0
        assert sum(int(str(row[3])) for row in ours) == told[operation]["io_bytes"]
    assert sorted(int(str(row[2])) for row in found) == list(range(0, 4 * 2**20, 4096))
    assert os.path.getsize(data) == 4 * 2**20  # noqa: PTH202
