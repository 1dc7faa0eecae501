from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyarrow import csv
from synthetic import write_corpus

from commands import call
from nephoscope.errors import InputError
from nephoscope.storage.corpus import PROCESSES, Corpus
from nephoscope.storage.features import features
from nephoscope.storage.generating import CoursePart, batches, captured, compose, part_of, plan, whole

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("synthetic") / "corpus"
    return write_corpus(folder, levels=(40, 80), replicates=1, seconds=20)


def test_a_generated_run_has_the_counts_of_the_captured_one(corpus: Corpus, tmp_path: Path) -> None:
    done = call("storage", "generate", corpus.folder, "--run", "3", "--out", tmp_path / "made")
    assert done.code == 0, done.err
    made = Corpus(tmp_path / "made")
    ours = features(made, made.runs[0], made.types)
    theirs = features(corpus, corpus.runs[3], corpus.types)
    assert ours.y.tolist() == theirs.y.tolist()
    assert set(ours.cells) <= set(theirs.cells)
    assert made.meta.view == "log"
    reads = [
        features.z[:, [cell.size_kb == 0 for cell in features.cells]].sum() for features in (ours, theirs)
    ]
    # The number of reads has a standard deviation of at most half the root of all requests.
    assert abs(reads[0] - reads[1]) < 4 * 0.5 * np.sqrt(theirs.y.sum())
    assert f"{int(theirs.y.sum()):,} requests in 20 s" in done.out


def test_all_outputs_hold_the_same_requests(corpus: Corpus, tmp_path: Path) -> None:
    names = ("made", "made.csv", "made.iolog")
    for name in names:
        done = call(
            "storage", "generate", corpus.folder, "--run", "0", "--seed", "9", "--out", tmp_path / name
        )
        assert done.code == 0, done.err
    of_corpus = Corpus(tmp_path / "made").requests(0)
    of_csv = csv.read_csv(tmp_path / "made.csv")
    for name in ("time_us", "segment", "offset", "bytes"):
        assert of_csv[name].to_pylist() == of_corpus[name].tolist()
    columns = "time=time_us,offset=offset,bytes=bytes,operation=operation,name=segment,process=process"
    again = call("storage", "import", tmp_path / "made.csv", tmp_path / "again", "--columns", columns)
    assert again.code == 0, again.err
    imported, segments = Corpus(tmp_path / "again").requests(0), Corpus(tmp_path / "again").table("segments")
    assert set(of_corpus["process"]) == {PROCESSES.index("backend"), PROCESSES.index("other")}
    for name in ("offset", "bytes", "operation", "process"):
        assert imported[name].tolist() == of_corpus[name].tolist()
    of_number = segments["name"].to_numpy()
    assert of_number[imported["segment"]].astype(int).tolist() == of_corpus["segment"].tolist()
    version, added, opened, *lines = (tmp_path / "made.iolog").read_text().splitlines()
    assert version == "fio version 3 iolog"
    assert (added, opened) == ("0 nephoscope.data add", "0 nephoscope.data open")
    for line, row in zip(lines, zip(*(of_corpus[name] for name in of_corpus), strict=True), strict=True):
        time, segment, offset, size, operation, *_ = map(int, np.nan_to_num(row))
        action = ("read", "write")[operation]
        # Segments are numbered from 0 in this corpus, so each lies at its number.
        assert line == f"{time} nephoscope.data {action} {segment * 16 * 2**20 + offset} {size}"


def test_the_seed_alone_decides(corpus: Corpus) -> None:
    origin = captured(corpus, [CoursePart()], 1)
    forecasts, _ = compose(origin, [CoursePart()], 1)
    of = {
        (seed, threads, most): b"".join(
            columns["offset"] for columns in batches(plan(origin, forecasts, seed), threads, most)
        )
        for seed, threads, most in ((1, 1, 1), (1, 3, 2**20), (2, 1, 1))
    }
    assert of[1, 1, 1] == of[1, 3, 2**20]
    assert of[1, 1, 1] != of[2, 1, 1]


def test_parts_fade_into_each_other(corpus: Corpus) -> None:
    parts = [CoursePart(run=0, seconds=10), CoursePart(run=5, seconds=30, transition=8)]
    origin = captured(corpus, parts)
    (before, after), total = compose(origin, parts, 1)
    assert total == 40
    assert before.counts[:, 18:].sum() == 0
    assert after.counts[:, :10].sum() == 0
    own = features(corpus, corpus.runs[0], corpus.types).y
    assert before.counts[:, :10].tolist() == own[:, :10].tolist()
    # Of what the run has in these seconds, 15/16 are left in the first of eight steps, and 1/16 in the last.
    expected = own[:, 10:18] * (1 - (np.arange(8) + 0.5) / 8)
    assert np.abs(np.cumsum(before.counts[:, 10:18], axis=1) - np.cumsum(expected, axis=1)).max() <= 0.5
    # A run of 20 s that is asked for 30 begins again.
    assert after.counts[:, 30:].tolist() == features(corpus, corpus.runs[5], corpus.types).y[:, :10].tolist()


def test_a_rate_scales_what_was_captured(corpus: Corpus) -> None:
    origin = captured(corpus, [CoursePart(run=0)])
    (as_it_was,), _ = compose(origin, [CoursePart(run=0)], 1)
    (twice,), _ = compose(origin, [CoursePart(run=0, tps=80.0)], 1)
    achieved = features(corpus, corpus.runs[0], corpus.types).x.sum() / 20
    assert twice.counts.sum() == pytest.approx(as_it_was.counts.sum() * 80 / achieved, abs=1)


def test_rounding_keeps_the_sums() -> None:
    means = np.random.default_rng(1).uniform(0, 3, (2, 1000))
    rounded = whole(means)
    assert (rounded >= 0).all()
    assert np.abs(np.cumsum(rounded, axis=1) - np.cumsum(means, axis=1)).max() <= 0.5


def test_a_course_is_a_file(corpus: Corpus, tmp_path: Path) -> None:
    course = tmp_path / "week.toml"
    course.write_text(
        "repeat = 2\n[[part]]\nrun = 0\nseconds = 5\ntransition = 2\n[[part]]\nrun = 5\nseconds = '5s'\n"
    )
    done = call("storage", "generate", corpus.folder, "--course", course, "--out", tmp_path / "made")
    assert (done.code, "in 20 s" in done.out) == (0, True), done.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", CoursePart()),
        ("tps=20000,seconds=10m,transition=5", CoursePart(tps="20000", seconds=600.0, transition=5.0)),
        ("tps=2x,mix=even", CoursePart(tps="2x", mix="even")),
        ("run=3,new_order=0.6,pay=0.4", CoursePart(run=3, mix={"new_order": 0.6, "pay": 0.4})),
    ],
)
def test_a_part_is_read_from_words(text: str, expected: CoursePart) -> None:
    assert part_of(text) == expected


@pytest.mark.parametrize("text", ["tps", "tps=1,tps=2", "run=0.5", "seconds=-1", "pay=nan", "pay=1,mix=a"])
def test_a_wrong_part_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        part_of(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run", "99"], "run 99"),
        ([], "which run"),
        (["--run", "0", "--mix", "pay=1"], "needs a model"),
        (["--run", "0", "--then", "seconds=0"], "1 s at least"),
        (["--run", "0", "--course", "x.toml"], "--course"),
        (["--run", "0", "--file", "a b", "--out", "x.iolog"], "without spaces"),
    ],
)
def test_wrong_options_are_refused(
    corpus: Corpus, tmp_path: Path, options: list[str | Path], said: str
) -> None:
    if "--out" not in options:
        options = [*options, "--out", tmp_path / "made"]
    done = call("storage", "generate", corpus.folder, *options)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")
    assert not (tmp_path / "made").exists()


def test_a_trained_model_generates(corpus: Corpus, tmp_path: Path) -> None:
    model = tmp_path / "model.npz"
    done = call("storage", "train", corpus.folder, "--out", model, "--no-validate")
    assert done.code == 0, done.err
    one, *_ = corpus.types
    options = [
        "--tps",
        "60",
        "--mix",
        f"{one}=0.5",
        "--seconds",
        "30",
        "--then",
        "tps=2x,seconds=10,transition=5",
    ]
    done = call("storage", "generate", model, *options, "--out", tmp_path / "made")
    assert (done.code, "in 40 s" in done.out) == (0, True), done.err
    made = Corpus(tmp_path / "made")
    found = features(made, made.runs[0], made.types)
    assert found.y[:, :30].sum() > 0
    assert made.table("segments").num_rows == corpus.table("segments").num_rows
    done = call("storage", "generate", model, "--out", tmp_path / "other")
    assert (done.code, "needs --seconds" in done.err) == (2, True)
