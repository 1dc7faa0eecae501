from __future__ import annotations

import contextlib
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synthetic import MIXES, Law, write_corpus
from typer.testing import CliRunner

from nephoscope.cli.app import app
from nephoscope.errors import InputError
from nephoscope.storage.asking import asked, base, reach, warnings
from nephoscope.storage.evaluating import trained
from nephoscope.storage.models.base import shares
from nephoscope.storage.models.files import save
from nephoscope.storage.whatif import answer, notes

if TYPE_CHECKING:
    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.features import Features
    from nephoscope.storage.models.base import Model

PAGE = Path(__file__).parents[2] / "docs" / "storage" / "models.md"


@pytest.fixture(scope="module")
def model(runs: list[Features], corpus: Corpus) -> Model:
    return trained("mixture", runs, None, corpus)


def test_a_question_starts_from_the_highest_level(model: Model) -> None:
    assert base(model).sum() == pytest.approx(160, rel=0.1)
    assert shares(base(model, "writing")) == pytest.approx(MIXES["writing"], abs=0.03)
    start, rates = asked(model, "2x", ["order=0.5"])
    assert rates.sum() == pytest.approx(2 * start.sum())
    assert shares(rates)[1] == pytest.approx(0.5)
    # The others share the rest as they did.
    assert rates[0] / rates[2] == pytest.approx(start[0] / start[2])
    _, named = asked(model, "300", ["reading"])
    assert named.sum() == pytest.approx(300)
    _, all_given = asked(model, None, ["browse=0.2,order=0.3", "pay=0.5"])
    assert shares(all_given) == pytest.approx([0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    ("tps", "mix", "said"),
    [
        ("fast", [], "--tps fast: allowed"),
        ("-1x", [], "--tps -1x: allowed"),
        ("inf", [], "--tps inf: allowed"),
        ("2x", ["sell=0.1"], "there is no transaction 'sell'; allowed: browse, order, pay"),
        ("2x", ["order=60"], "allowed: a share from 0 to 1"),
        ("2x", ["order=0.6,pay=0.6"], "the shares add up to 1.2"),
        ("2x", ["even", "reading"], "one captured mix"),
        ("2x", ["nights"], "had the mix 'nights'; allowed: even, reading, writing"),
    ],
)
def test_what_cannot_be_asked_is_refused(model: Model, tps: str, mix: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(model, tps, mix)


def test_within_what_was_captured_nothing_is_warned_of(model: Model) -> None:
    inside = 70 * np.mean([MIXES["reading"], MIXES["writing"], MIXES["even"]], axis=0)
    assert not warnings(model, inside)
    assert not notes(model, inside)
    found = reach(model.known, inside)
    assert found.tps == 1
    assert found.mix == pytest.approx(0, abs=1e-9)


def test_extrapolation_is_told_with_its_distance(model: Model) -> None:
    highest = float(model.known.rates.sum(axis=1).max())
    outside = 3 * highest * np.array([0.05, 0.9, 0.05])
    tps, mix = warnings(model, outside)
    assert f"{3 * highest:,.4g} TPS is 3 times the highest captured" in tps
    # From writing, 25 of 100 transactions would have to be orders instead.
    assert reach(model.known, outside).mix == pytest.approx(0.25, abs=0.04)
    assert "order 0.9 (captured 0.1" in mix
    assert "too narrow" in notes(model, outside)[-1]
    (low,) = warnings(model, 5 * np.array(MIXES["even"]))
    assert "of the lowest captured" in low


def test_a_mix_outside_the_hull_but_within_each_range_is_outside(model: Model) -> None:
    # Each share lies between captured ones, and together they are no mixture of the captured mixes.
    rates = 80 * np.array([0.6, 0.3, 0.1]) + 80 * np.array([-0.05, 0.15, -0.1])
    (said,) = warnings(model, rates)
    assert "lies outside the captured ones by" in said


def test_the_answer_at_twice_the_tps_is_that_of_the_law(model: Model) -> None:
    law = Law()
    start, rates = asked(model, "2x", ["writing"])
    table = answer(model, start, rates, 60, 0)
    rows = {row["figure"]: row for row in table.rows}
    assert rows["requests/s"]["foretold"] == pytest.approx(law.means(rates).sum(), rel=0.04)
    assert (
        rows["requests/s"]["foretold_ci95_low"]
        < law.means(rates).sum()
        < rows["requests/s"]["foretold_ci95_high"]
    )
    assert rows["requests/s"]["ratio"] == pytest.approx(2, rel=0.05)
    reads = law.weights(rates)[0] @ np.array([cell.size_kb == 0 for cell in law.cells])
    truth = reads * law.means(rates)[0] / law.means(rates).sum()
    assert rows["read share"]["foretold"] == pytest.approx(truth, rel=0.04)


def test_the_commands_work_together(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "model.npz"
    runner = CliRunner()
    made = runner.invoke(
        app, ["storage", "train", str(corpus.folder), "--model", "constant", "--out", str(out)]
    )
    assert made.exit_code == 0
    asked_json = ["storage", "whatif", str(out), "--tps", "2x", "--mix", "order=0.6", "--json"]
    found = json.loads(runner.invoke(app, asked_json).stdout)
    assert found["figures"][0]["figure"] == "requests/s"
    assert "times the highest captured" in found["warnings"][0]
    shown = runner.invoke(app, ["storage", "whatif", str(out), "--format", "markdown"])
    assert "| requests/s |" in shown.stdout
    args = [
        "storage",
        "evaluate",
        str(corpus.folder),
        "--model",
        "constant",
        "--mix",
        "even",
        "--tables",
        str(tmp_path),
    ]
    told = runner.invoke(app, args)
    assert told.exit_code == 0
    assert "Errors, new mix" in told.stdout
    assert (tmp_path / "evaluation.csv").is_file()


def test_a_model_without_intervals_says_so(runs: list[Features], corpus: Corpus, tmp_path: Path) -> None:
    model = trained("constant", runs, None, corpus, validate=False)
    save(model, tmp_path / "m.npz")
    assert "no intervals" in notes(model, base(model))[-1]


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    write_corpus(
        tmp_path / "corpora" / "tpcc",
        levels=(10, 20, 40),
        replicates=1,
        seconds=20,
        types=("order_status", "new_order", "payment"),
    )
    commands = re.findall(r"^nephoscope (storage .*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["evaluate", "train", "whatif"]
    with contextlib.chdir(tmp_path):
        for command in commands:
            done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, done.output
    assert "extrapolated" in done.output
