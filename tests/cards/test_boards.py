"""Boards: who is ranked where, who is not and why, and a page that foreign cards cannot command."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from browser import CHROMIUM, browse_page
from commands import call
from nephoscope.cards.board import Board, read_board, tables_of
from nephoscope.cards.card import Card, CardFigure, text_of
from nephoscope.cards.making import card_of, hash_over
from nephoscope.store import StoredRun
from planted_runs import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cards = Callable[..., Path]


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Card:
    return card_of(StoredRun(run(tmp_path_factory.mktemp("board") / "first", repetitions=2).folder))


@pytest.fixture
def write(first: Card, tmp_path: Path) -> Cards:
    """Write the card of another run: its figures and what is said of its system are those that are given."""

    def made(
        name: str,
        value: float,
        half: float | None = 1.0,
        *,
        tuned: bool = False,
        score: str = "P",
        **changed: Any,
    ) -> Path:
        ci95 = None if half is None else [value - half, value + half]
        figure = CardFigure(
            value=value,
            unit="TPS per $/min",
            better="higher",
            ci95=ci95,
            repetitions=3,
            median=value,
            worst=value - 2,
        )
        files = [
            file.model_copy(update={"sha256": hashlib.sha256(name.encode()).hexdigest()})
            for file in first.files
        ]
        card = first.model_copy(
            update={
                "scores": {score: figure},
                "run": first.run.model_copy(update={"study": name}),
                "tuning": first.tuning.model_copy(update={"tuned": tuned, "stated": True if tuned else None}),
                "files": files,
                "sha256": hash_over(files),
                **changed,
            }
        )
        path = tmp_path / f"{name}.json"
        path.write_text(text_of(card), encoding="utf-8")
        return path

    return made


def ranks(board: Board) -> list[list[tuple[str, int | None]]]:
    return [[(one.of.card.run.study, one.rank) for one in group.standings] for group in board.groups]


def test_cards_whose_intervals_overlap_share_a_rank(write: Cards) -> None:
    files = [write("a", 10.0), write("b", 20.0), write("c", 19.5), write("d", 5.0, None)]
    board = read_board(files)
    assert board.by == "P"
    assert ranks(board) == [[("b", 1), ("c", 1), ("a", 3), ("d", None)]]


def test_a_lower_figure_may_be_better(write: Cards, first: Card) -> None:
    board = read_board([write("a", 10.0), write("b", 20.0)], "SELECT c=8 p99")
    assert board.groups[0].standings[0].figure.better == "lower"
    assert first.points["SELECT c=8"]["p99"].value == board.groups[0].standings[0].figure.value


def test_only_what_measures_the_same_stands_in_one_table(write: Cards, first: Card) -> None:
    files = [
        write("a", 10.0),
        write("b", 20.0, workload=first.workload.model_copy(update={"scale": 10.0})),
        write("c", 30.0, price_book="our-prices"),
        write("d", 40.0, workload=first.workload.model_copy(update={"options": {"hot": True}})),
    ]
    board = read_board(files)
    assert ranks(board) == [[("a", 1)], [("b", 1)], [("c", 1)], [("d", 1)]]
    titles = [group.title for group in board.groups]
    assert len(set(titles)) == 4
    assert titles[3].endswith("(2: other options, or other files of the workload)")


def test_tuned_systems_are_ranked_beside_untuned_ones_alone(write: Cards, first: Card) -> None:
    other = first.system.model_copy(update={"version": "another"})
    files = [
        write("plain", 10.0),
        write("tuned", 20.0, tuned=True),
        write("alone", 30.0, tuned=True, system=other),
    ]
    board = read_board(files)
    assert ranks(board) == [[("tuned", 1), ("plain", 2)]]
    ((apart, why),) = board.apart
    assert apart.card.run.study == "alone"
    assert why.startswith(
        "it is tuned (the study says so), and no untuned card here has P of the same system"
    )
    assert ranks(read_board([*files, write("partner", 5.0, system=other)])) == [
        [("alone", 1), ("tuned", 2), ("plain", 3), ("partner", 4)]
    ]


def test_what_has_no_figure_and_what_was_changed_is_not_ranked(write: Cards) -> None:
    lacking = write("lacking", 1.0, score="T")
    forged = write("forged", 99.0)
    card = json.loads(forged.read_text())
    forged.write_text(json.dumps(card | {"sha256": "0" * 64}))
    board = read_board([write("a", 10.0), lacking, forged])
    assert {one.card.run.study: why for one, why in board.apart} == {
        "lacking": "it has no P: not measured",
        "forged": "its hash is not that of the files that it lists",
    }
    table = tables_of(board)[-1]
    assert (table.name, len(table.rows)) == ("apart", 2)


def test_wrong_words_are_refused(write: Cards, tmp_path: Path) -> None:
    one = write("a", 10.0)
    ended = call("board", one, "--by", "speed")
    assert (ended.code, "--by speed: no card has it; allowed are P, SELECT c=2 TPS" in ended.err) == (2, True)
    again = tmp_path / "again.json"
    again.write_text(one.read_text())
    ended = call("board", one, again, "--out", tmp_path / "board.html")
    assert (ended.code, "are cards of one run; allowed: each run once" in ended.err) == (2, True)
    ended = call("board", one, "--out", tmp_path / "none" / "board.html")
    assert (ended.code, "cannot be written" in ended.err) == (2, True)


def test_a_board_is_printed_as_a_table_as_markdown_and_in_files(write: Cards, tmp_path: Path) -> None:
    files = [write("a", 10.0), write("b", 20.0)]
    out = tmp_path / "board.html"
    ended = call("board", *files, "--out", out)
    assert ended.code == 0, ended.err
    assert f"board: {out}" in ended.out
    assert "20 ± 1.0" in ended.out
    ended = call("board", *files, "--out", out, "--format", "markdown", "--tables", tmp_path / "tables")
    assert "| rank | system | study |" in ended.out
    assert {file.name for file in (tmp_path / "tables").glob("*.csv")} == {"board-1.csv", "scores-1.csv"}


HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)> \u202e {{ 7 * 7 }}'


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_drawn_in_both_themes_and_foreign_texts_are_texts(
    write: Cards, first: Card, tmp_path: Path, theme: str
) -> None:
    hostile = first.system.model_copy(update={"version": HOSTILE, "provider": HOSTILE})
    files = [
        write("a", 10.0),
        write("b", 20.0, system=hostile, price_book=first.price_book),
        write("c", 30.0, tuned=True, system=hostile.model_copy(update={"version": "3"})),
        write("d", 12.0, warnings=[HOSTILE]),
    ]
    out = tmp_path / "made.html"
    ended = call("board", *files, "--out", out)
    assert ended.code == 0, ended.err
    page = out.read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "{{ 7 * 7 }}" in page
    # The page has its own policy: nothing is loaded.
    themed = f"?theme={theme}"
    dom, console = browse_page(page, "board", tmp_path, "--dump-dom", query=themed)
    assert console == []
    assert f'data-theme="{theme}"' in dom
    chart = re.search(r'<div class="chart[^"]*" role="img".*?</figure>', dom, re.DOTALL)
    assert chart is not None
    assert "<svg" in chart[0]
    assert "NaN" not in chart[0]
    picture = tmp_path / f"{theme}.png"
    browse_page(page, "board", tmp_path, f"--screenshot={picture}", query=themed)
    assert picture.stat().st_size > 10_000
