"""Miss-ratio curves of forecasts, on corpora whose locality was planted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

import planted
import pytest
from planted import Planted
from synthetic import MIXES, PAGE, SEGMENT_PAGES, Law, write_corpus
from typer.testing import CliRunner

from browser import CHROMIUM, browse_page
from nephoscope.cli.app import app
from nephoscope.report.page import render_with
from nephoscope.storage import curves as made_curves
from nephoscope.storage import evaluation_tables
from nephoscope.storage.corpus import native_columns
from nephoscope.storage.curves import Curves
from nephoscope.storage.describing import describe_run
from nephoscope.storage.evaluated_page import TEMPLATE, best_and_worst, build
from nephoscope.storage.evaluating import KINDS, REPLICATE, captured, evaluate, trained
from nephoscope.storage.features import features
from nephoscope.storage.generating import batches, foreseen, plan
from nephoscope.storage.models.base import training
from nephoscope.storage.models.files import load, save
from nephoscope.storage.models.registry import train
from nephoscope.tables.numbers import number

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.evaluating import Evaluation, Kind

LEVELS = (20, 40, 80)
TWO_MIXES = {name: MIXES[name] for name in ("reading", "even")}
HOT = 32
"""Pages of a segment; each comes again and again."""


def corpus_of(folder: Path, pages: Callable[[float], int], law: Law | None = None) -> Corpus:
    return write_corpus(folder, law, levels=LEVELS, mixes=TWO_MIXES, replicates=2, seconds=30, pages=pages)


def evaluated(corpus: Corpus) -> Evaluation:
    runs = [features(corpus, run, corpus.types) for run in corpus.runs]
    return evaluate(runs, ["mixture"], curves=Curves(corpus))


def distance(evaluation: Evaluation, kind: Kind, model: str) -> float:
    found = evaluation.error(kind, model, "miss_ratio")
    assert found is not None
    return found.mean


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(tmp_path_factory.mktemp("hot") / "corpus", lambda _tps: HOT)


@pytest.fixture(scope="module")
def evaluation(hot: Corpus) -> Evaluation:
    return evaluated(hot)


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_locality_comes_back_and_any_page_alike_is_far(evaluation: Evaluation, kind: Kind) -> None:
    assert evaluation.reuse(kind) > 0.15
    assert distance(evaluation, kind, "mixture") <= 0.05
    assert evaluation.holds(kind, "mixture", "miss_ratio") is True
    for name in ("oracle", REPLICATE):
        assert distance(evaluation, kind, name) <= 0.03
    # Any of 2,048 pages in the place of 32.
    assert distance(evaluation, kind, "poisson") > 0.25


def test_nothing_of_a_held_out_runs_locality_is_used(tmp_path: Path) -> None:
    highest = max(LEVELS)
    found = evaluated(corpus_of(tmp_path / "corpus", lambda tps: 8 if tps == highest else 256))
    for name in ("mixture", "constant"):
        assert distance(found, "higher TPS", name) > 0.15
        assert found.holds("higher TPS", name, "miss_ratio") is False
    # The oracle is told it.
    assert distance(found, "higher TPS", "oracle") <= 0.05


def test_the_requests_of_a_held_out_run_do_not_change_what_is_generated(hot: Corpus, tmp_path: Path) -> None:
    other = corpus_of(tmp_path / "corpus", lambda tps: 2 if tps == max(LEVELS) else HOT)
    made = []
    for corpus in (hot, other):
        learned = [
            features(corpus, run, corpus.types) for run in corpus.runs if run.target_tps != max(LEVELS)
        ]
        held_out = features(corpus, corpus.runs[-1], corpus.types)
        model = train("mixture", training(learned))
        forecast = model.sample(held_out.x.mean(axis=1), held_out.run.seconds, 3)
        curve = Curves(corpus).generated(model, forecast, held_out.run, [run.run.run for run in learned])
        assert curve is not None
        made.append(curve)
    assert made[0].miss_ratio.tolist() == made[1].miss_ratio.tolist()
    assert made[0].accesses == made[1].accesses


def test_a_bar_that_any_stream_holds_tells_nothing(tmp_path: Path) -> None:
    found = evaluated(corpus_of(tmp_path / "corpus", lambda _tps: 2048))
    assert found.reuse("higher TPS") <= 0.05
    assert distance(found, "higher TPS", "mixture") <= 0.05
    assert found.holds("higher TPS", "mixture", "miss_ratio") is None
    row = next(row for row in evaluation_tables.shown(found)[0].rows if row["error of"] == "miss-ratio curve")
    assert row["mixture"].endswith(" ?")
    assert any("never come again" in note for note in evaluation_tables.notes(found))


def test_without_reads_there_is_no_curve_and_the_reason_is_said(tmp_path: Path) -> None:
    found = evaluated(corpus_of(tmp_path / "corpus", lambda _tps: HOT, Law(reads=(0.0, 0.0, 0.0))))
    assert found.error("higher TPS", "mixture", "miss_ratio") is None
    assert any("or of what was generated, no reads" in reason for reason in found.reasons)


def test_the_poisson_model_goes_to_any_page_once_it_is_saved_too(hot: Corpus, tmp_path: Path) -> None:
    runs = [features(hot, run, hot.types) for run in hot.runs]
    file = tmp_path / "model.npz"
    highest = {}
    for name in ("poisson", "constant"):
        save(trained(name, runs, None, hot, validate=False), file)
        model = load(file)
        forecast = model.sample(runs[-1].x.mean(axis=1), 20, 1)
        made = [native_columns(columns) for columns in batches(plan(foreseen(model), [forecast], 1))]
        highest[name] = max(int(columns["offset"].max()) for columns in made) // PAGE
    assert highest["constant"] < HOT
    assert highest["poisson"] > 0.9 * SEGMENT_PAGES


@pytest.mark.parametrize("view", ["log", "page"])
def test_a_captured_curve_is_that_of_describe(view: Literal["log", "page"], tmp_path: Path) -> None:
    corpus = planted.write_corpus(tmp_path / "corpus", Planted(seconds=20), view=view)
    (run,) = corpus.runs
    curve, described = Curves(corpus).captured(run), describe_run(corpus, run).whole_curve
    assert curve is not None
    assert described is not None
    assert curve.accesses == described.accesses
    assert curve.miss_ratio.tolist() == described.miss_ratio.tolist()
    assert Curves(corpus).accesses == ("reads" if view == "log" else "reads and writes")


def test_curves_can_be_left_out(hot: Corpus) -> None:
    found = evaluate([features(hot, run, hot.types) for run in hot.runs], ["mixture"])
    assert found.error("higher TPS", "mixture", "miss_ratio") is None
    assert "no miss-ratio curves: they were left out" in evaluation_tables.notes(found)
    assert captured(found.tested[0].run).curve is None


def test_a_large_run_is_sampled_and_the_share_is_said(hot: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_curves, "COUNTED", 2000)
    found = evaluated(hot)
    sampled = [one.truth.curve for one in found.tested if one.truth.curve is not None]
    assert all(curve.rate == pytest.approx(2000 / curve.accesses) for curve in sampled if not curve.is_exact)
    assert not all(curve.is_exact for curve in sampled)
    assert distance(found, "higher TPS", "mixture") <= 0.06
    assert any("of a sample" in note for note in evaluation_tables.notes(found))


def test_the_page_draws_the_best_and_the_worst_forecast(hot: Corpus, evaluation: Evaluation) -> None:
    ours = [one for one in evaluation.tested if one.model == "mixture"]
    apart = sorted(one.errors["divergence"] or 0.0 for one in ours)
    chosen = best_and_worst(evaluation)
    assert [one.errors["divergence"] for one in chosen.values()] == [apart[0], apart[-1]]
    view = build(evaluation, hot)
    assert [drawn.id for drawn in view.forecasts] == ["best", "worst"]
    for drawn, one in zip(view.forecasts, chosen.values(), strict=True):
        assert f"Run {one.run.run.run}: {one.kind}" in drawn.said
        captured_run, forecast, difference = drawn.heat
        assert (captured_run.low, captured_run.high) == (forecast.low, forecast.high)
        assert f"Kullback-Leibler divergence {number(one.errors['divergence'], 3)} nats" in difference.message
        lines = {line.name: line.y for line in drawn.timeline.lines}
        assert lines["captured run: foreground"] == tuple(one.run.y[0].tolist())
        assert one.forecast is not None
        assert lines["forecast: foreground"] == tuple(one.forecast.counts[0].tolist())
        (curves,) = drawn.caches
        assert [line.name for line in curves.lines] == ["captured run", "forecast"]
    ids = re.findall(r'<figure [^>]*id="([^"]+)"', render_with(TEMPLATE, view))
    assert len(set(ids)) == len(ids) == 10
    rows = {row[0]: row for row in view.tables[0].rows}
    assert "≤ 0.05" in rows["miss-ratio curve"]


def test_a_page_without_curves_has_the_rest(hot: Corpus) -> None:
    found = evaluate([features(hot, run, hot.types) for run in hot.runs], ["constant"])
    assert all(not drawn.caches and len(drawn.heat) == 3 for drawn in build(found, hot).forecasts)


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_draws_the_page(theme: str, hot: Corpus, evaluation: Evaluation, tmp_path: Path) -> None:
    made = render_with(TEMPLATE, build(evaluation, hot))
    page, console = browse_page(made, "evaluated", tmp_path, "--dump-dom", query=f"?theme={theme}")
    assert console == []
    charts = re.findall(r'<div class="chart[^"]*" role="img".*?</figure>', page, re.DOTALL)
    assert len(charts) == 10
    assert all(chart.count("<path") > 3 and "NaN" not in chart for chart in charts)


def test_every_output_has_the_figure(hot: Corpus, evaluation: Evaluation, tmp_path: Path) -> None:
    error = distance(evaluation, "higher TPS", "mixture")
    command = ["storage", "evaluate", str(hot.folder)]
    runner = CliRunner()
    terminal = runner.invoke(app, command)
    markdown = runner.invoke(app, [*command, "--format", "markdown"])
    for printed in (terminal, markdown):
        assert printed.exit_code == 0, printed.output
        line = next(line for line in printed.output.splitlines() if "miss-ratio curve" in line)
        assert f"{error:.3g}" in line
        assert "≤ 0.05" in line
    as_json = runner.invoke(
        app, [*command, "--json", "--tables", str(tmp_path), "--html", str(tmp_path / "page.html")]
    )
    rows = json.loads(as_json.stdout)["evaluation"]
    first = next(row for row in rows if row["figure"] == "miss_ratio" and row["model"] == "mixture")
    assert first["error"] == pytest.approx(error)
    assert first["holds"] is True
    written = (tmp_path / "evaluation.csv").read_text()
    assert '"higher TPS","mixture","miss_ratio"' in written
    assert "reuse" in (tmp_path / "held-out-runs.csv").read_text().splitlines()[0]
    assert "The worst forecast of mixture" in (tmp_path / "page.html").read_text()
    without = runner.invoke(app, [*command, "--no-curves"])
    assert "no miss-ratio curves: they were left out" in without.output
