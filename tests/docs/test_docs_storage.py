"""The pages on the storage tier, done as they say: their commands given to a shell, word for word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT
from page_shell import do, steps_on
from planted import Planted, write_corpus

from commands import call
from nephoscope.storage.corpus import Corpus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PAGES = ROOT / "docs" / "storage"


def done(page: str, folder: Path) -> dict[str, str]:
    """Do a page's commands; gives what each has printed, errors that the page shows included."""
    printed = {}
    for step in steps_on(PAGES / page):
        code = 2 if any(line.startswith("nephoscope: ") for line in step.shown) else 0
        lines = do(step, folder, code=code)
        assert not step.shown or lines == step.shown, step
        printed[step.bare] = "\n".join(lines)
    return printed


@pytest.mark.servers
def test_capture_train_generate_run_and_report(tmp_path: Path) -> None:
    printed = done("README.md", tmp_path)
    assert len(printed) == 7
    corpus = Corpus(tmp_path / "corpus")
    assert len(corpus.runs) == 12
    assert {run.target_tps for run in corpus.runs} == {20, 40, 80}
    assert corpus.meta.source["study"] == "capture-small"
    assert len(Corpus(tmp_path / "generated").requests(0)["time_us"]) > 100
    assert "extrapolated: " in next(text for word, text in printed.items() if "whatif" in word)
    last = list(printed.values())[-1]
    assert all(source in last for source in ("corpus:0", "generated", "poisson"))
    report = (tmp_path / "runs" / "latest" / "report.html").read_text(encoding="utf-8")
    assert "</html>" in report
    assert "corpus:0" in report


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("generate.md", ["made/corpus.json", "made.csv", "model.npz", "made.iolog", "day.csv"]),
        ("models.md", ["tpcc.npz"]),
        ("execute.md", ["corpus/corpus.json", "runs/latest/report.html"]),
        ("trace.md", ["corpus/corpus.json", "corpus2/corpus.json"]),
    ],
)
def test_the_commands_of_a_page_work(page: str, made: list[str], tmp_path: Path) -> None:
    assert len(done(page, tmp_path)) > 2
    assert [name for name in made if not (tmp_path / name).is_file()] == []
    assert not (tmp_path / "corpus3").exists() or not any((tmp_path / "corpus3").iterdir())


def test_the_commands_of_the_page_on_describe_work(tmp_path: Path) -> None:
    short = Planted(seconds=5)
    write_corpus(tmp_path / "captured", short, short)
    write_corpus(tmp_path / "generated", short, seed=8)
    assert len(done("describe.md", tmp_path)) > 5
    for name in ("captured.html", "both.html", "runs.html", "figures"):
        assert (tmp_path / name).exists()


def test_the_page_on_describe_names_every_table(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "a", Planted(seconds=3), Planted(seconds=3)).folder
    assert call("storage", "describe", corpus, corpus, "--out", tmp_path / "t").code == 0
    named = set(re.findall(r"`(storage_\w+)`", (PAGES / "describe.md").read_text(encoding="utf-8")))
    assert named == {file.stem for file in (tmp_path / "t").iterdir()}
