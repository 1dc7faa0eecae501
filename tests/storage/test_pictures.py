"""Pictures have what was planted, and a browser draws them in silence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from planted import Planted, write_corpus

from browser import CHROMIUM, browse_page, sheets_of
from nephoscope.report.page import render_with
from nephoscope.storage import pictures
from nephoscope.storage.described_page import TEMPLATE, build
from nephoscope.storage.described_tables import notes_of, tables_of
from nephoscope.storage.describing import describe_run
from nephoscope.storage.differences import differences
from nephoscope.storage.features import Cell
from nephoscope.storage.forecast import Forecast
from nephoscope.storage.pictures import MOST_COLUMNS, MOST_ROWS, Side
from nephoscope.storage.sizes import WriteSizes

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.storage.describing import DescribedRun

ATTACK = "</script><img src=x onerror=alert(1)>"


def side(z: dict[tuple[int, int], float], name: str = "a") -> Side:
    cells = [Cell(*cell) for cell in z]
    weights = np.array([list(z.values()), [0.0] * len(z)])
    return Side(name, np.array([[3.0, 5.0], [0.0, 0.0]]), cells, weights, {n: f"t{n}" for n in range(2000)})


def described(folder: Path, planted: Planted, names: str = "orders") -> DescribedRun:
    corpus = write_corpus(folder, planted, names=names)
    return describe_run(corpus, corpus.runs[0])


def page_of(*runs: DescribedRun) -> str:
    apart = [differences(*runs)] if len(runs) > 1 else []
    return render_with(TEMPLATE, build(runs, [*apart, *tables_of(runs)], notes_of(runs)))


def test_a_heat_map_has_the_share_of_each_cell_hottest_segment_first() -> None:
    (chart,) = pictures.heat_maps([side({(4, 0): 60, (4, 8): 10, (9, 0): 30})])
    assert chart.rows == ("t4", "t9")
    assert chart.columns == ("read", "8")
    assert set(chart.cells) == {(0, 0, 60.0), (1, 0, 10.0), (0, 1, 30.0)}
    assert (chart.high, chart.low) == (60.0, 0.006)
    assert chart.ticks[-1] == (1.0, "60 %")
    assert "reads in t4" in chart.message


@pytest.mark.parametrize("segments", [10, 40, 41, 1000])
def test_the_coldest_of_many_segments_share_a_row(segments: int) -> None:
    (chart,) = pictures.heat_maps([side({(n, 0): 2000 - n for n in range(segments)})])
    assert len(chart.rows) == min(segments, MOST_ROWS)
    assert sum(value or 0 for _, _, value in chart.cells) == pytest.approx(100, rel=1e-3)
    assert ("others" in chart.rows[-1]) == (segments > MOST_ROWS)
    if segments == 1000:
        assert chart.rows[-1] == "961 others"


def test_many_sizes_share_columns_and_none_is_lost() -> None:
    (chart,) = pictures.heat_maps([side({(0, size): 1.0 for size in range(301)})])
    assert len(chart.columns) <= MOST_COLUMNS
    assert chart.columns[:6] == ("read", "1", "2", "3", "4", "5–6")  # noqa: RUF001 - a range
    of = {chart.columns[column]: value for column, _, value in chart.cells}
    assert of["5–6"] == pytest.approx(2 * 100 / 301, rel=1e-4)  # noqa: RUF001
    assert sum(value or 0 for value in of.values()) == pytest.approx(100, rel=1e-3)


def test_two_sides_have_the_same_rows_columns_and_colours_and_their_difference() -> None:
    one, other = side({(1, 0): 3, (2, 4): 1}), side({(1, 0): 5, (3, 8): 5}, "b")
    first, second, apart = pictures.heat_maps([one, other])
    assert first.rows == second.rows == apart.rows == ("t1", "t3", "t2")
    assert first.columns == second.columns == ("read", "4", "8")
    assert (first.low, first.high) == (second.low, second.high)
    assert set(apart.cells) == {(0, 0, -25.0), (1, 2, -25.0), (2, 1, 50.0)}
    assert (apart.low, apart.high) == (-50.0, 50.0)
    assert apart.message.startswith("50")
    q = 0.999 * 0.5 + 0.001 / 3
    known = 0.75 * np.log(0.75 / q) + 0.25 * np.log(0.25 / (0.001 / 3))
    assert apart.message.endswith(f"Kullback-Leibler divergence {known:.3g} nats.")


def test_a_forecast_is_drawn_as_a_run_is() -> None:
    cells = [Cell(1, 0), Cell(2, 4)]
    weights = np.array([[0.75, 0.25], [0.0, 1.0]])
    sizes = WriteSizes(np.arange(3), {})
    forecast = Forecast(np.array([[4, 4], [0, 2]]), cells, weights, sizes)
    made = Side.of_forecast(forecast, {1: "t1"}, "estimated")
    (chart,) = pictures.heat_maps([made])
    assert {chart.rows[row]: value for _, row, value in chart.cells} == {"t1": 60.0, "segment 2": 40.0}
    assert [line.y for line in pictures.timeline([made]).lines] == [(4, 4), (0, 2)]
    assert pictures.transactions([made]) is None
    assert pictures.miss_ratios([made]) is None
    assert pictures.tails([made]) is None


def test_reads_and_writes_have_their_own_bars() -> None:
    made = [side({(1, 0): 80, (2, 0): 20, (2, 4): 5})]
    reads, writes = (pictures.by_segment(made, reads=what) for what in (True, False))
    assert reads.names == writes.names == ("t1", "t2")
    assert (reads.series[0].values, writes.series[0].values) == ((80, 20), (0, 100))
    assert reads.message == "a: 1 of 2 segments take 80% of the reads."
    sizes = pictures.by_size(made)
    assert (sizes.names, sizes.series[0].values) == (("4",), (100,))


def test_a_long_run_is_drawn_by_means() -> None:
    made = side({(1, 0): 1})
    y = np.vstack([np.tile([1.0, 3.0], 900), np.zeros(1800)])
    chart = pictures.timeline([Side("a", y, made.cells, made.z, made.names)])
    assert len(chart.x) <= 600
    assert "Each point is the mean of" in chart.note


def test_a_run_without_requests_is_drawn_too(tmp_path: Path) -> None:
    page = page_of(described(tmp_path / "none", Planted(rate=0.0, seconds=3)))
    assert "There are no requests." in page


browsed = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.mark.long
@browsed
def test_a_browser_draws_one_run_and_no_name_becomes_a_tag(tmp_path: Path) -> None:
    run = described(tmp_path / f"a{ATTACK[:9].replace('/', '')}", Planted(seconds=20), names=ATTACK)
    page, console = browse_page(page_of(run), "one", tmp_path, "--dump-dom")
    assert console == []
    assert "<img src=x" not in page
    charts = re.findall(r'<div class="chart[^"]*" role="img".*?</figure>', page, re.DOTALL)
    assert len(charts) == 8
    assert all(chart.count("<path") > 3 and "NaN" not in chart for chart in charts)


@pytest.mark.long
@browsed
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_draws_two_runs(theme: str, tmp_path: Path) -> None:
    many = Planted(seconds=30, segments=300, sizes=tuple(1024 * n for n in range(1, 60)))
    runs = [described(tmp_path / name, many) for name in ("captured", "generated")]
    page, console = browse_page(page_of(*runs), "two", tmp_path, "--dump-dom", query=f"?theme={theme}")
    assert console == []
    assert page.count("<svg") >= 10
    colours = set(re.findall(r'fill="(rgb\([^"]+\))"', page))
    assert len(colours) > 20, "a heat map has many colours"


@pytest.mark.long
@browsed
def test_the_page_prints_on_few_sheets(tmp_path: Path) -> None:
    sheets, console = sheets_of(page_of(described(tmp_path / "run", Planted(seconds=20))), tmp_path)
    assert console == []
    assert 2 <= sheets <= 5
