"""A board: cards ranked by a figure, in groups that measure the same; tuned systems only beside untuned ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.cards import ssh
from nephoscope.cards.card import CardFigure, read_card
from nephoscope.cards.making import hash_over
from nephoscope.errors import InputError
from nephoscope.scoring.definitions import BY_ENDS, DEFINITIONS, SCORES
from nephoscope.tables.columns import resources_text, text, whole
from nephoscope.tables.model import ABSENT, Column, Row, Table, ends, figure, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nephoscope.cards.card import Card


@dataclass(frozen=True)
class BoardCard:
    """A card on a board."""

    file: str
    card: Card
    signature: str
    """Who has signed it; empty where nobody has."""


@dataclass(frozen=True)
class Standing:
    """A card with its place."""

    of: BoardCard
    figure: CardFigure
    rank: int | None
    """One more than the number of cards whose interval lies apart on the better side; None without an interval."""


@dataclass(frozen=True)
class BoardGroup:
    """Cards that measure the same: one workload at one scale, by one price book."""

    title: str
    standings: Sequence[Standing]


@dataclass(frozen=True)
class Board:
    """A board."""

    by: str
    """The figure that ranks."""
    groups: Sequence[BoardGroup]
    apart: Sequence[tuple[BoardCard, str]]
    """Cards that are not ranked, and why."""


def read_board(files: Sequence[Path], by: str | None = None, signers: Path | None = None) -> Board:
    """Read cards and rank them by a score or a figure of a point; by O, or the first score that there is, if left out.

    Raises ``InputError`` for a file that is no card, a card that is named twice, or a figure that no card has.
    """
    cards = [_read(file, signers) for file in files]
    ranked, apart = [], []
    for one, reason in cards:
        if reason is None:
            ranked.append(one)
        else:
            apart.append((one, reason))
    by = _chosen(by, [one.card for one, _ in cards])
    seen: dict[str, str] = {}
    for one, _ in cards:
        if (other := seen.setdefault(one.card.sha256, one.file)) != one.file:
            raise InputError(f"{other} and {one.file} are cards of one run; allowed: each run once")
    groups: dict[Any, list[BoardCard]] = {}
    for one in ranked:
        if (reason := _kept_apart(one, ranked, by)) is not None:
            apart.append((one, reason))
        else:
            groups.setdefault(_measures(one.card), []).append(one)
    return Board(by, list(_ranked(groups, by)), apart)


def _read(file: Path, signers: Path | None) -> tuple[BoardCard, str | None]:
    """Read a card, and say why it may not be ranked."""
    card, signed = read_card(file)
    if card.sha256 != hash_over(card.files):
        return BoardCard(str(file), card, ""), "its hash is not that of the files that it lists"
    if card.signature is None:
        return BoardCard(str(file), card, ""), "it is not signed" if signers is not None else None
    found = ssh.check(signed, card.signature, signers)
    said = found.said.partition(";")[0]
    return BoardCard(str(file), card, said if found.holds else ""), None if found.holds else found.said


def _chosen(by: str | None, cards: Sequence[Card]) -> str:
    known = list(dict.fromkeys(name for card in cards for name in figures_of(card)))
    if by is None:
        return next((name for name in ("O", *SCORES, *known) if name in known), "O")
    if by not in known:
        raise InputError(
            f"--by {by}: no card has it; allowed are {', '.join(known) or 'none: no card has a figure'}"
        )
    return by


def figures_of(card: Card) -> dict[str, CardFigure]:
    """Return all figures of a card by name: scores, and those of points as ``RW c=16 TPS``."""
    of_points = {
        f"{point} {name}": found for point, figures in card.points.items() for name, found in figures.items()
    }
    return {**card.scores, **of_points}


def _measures(card: Card) -> str:
    """Return what has to be the same where figures are compared."""
    workload = card.workload
    return json.dumps([workload.model_dump(), card.price_book], sort_keys=True)


def _system(card: Card) -> str:
    """Return what a tuned system and its untuned partner have in common."""
    resources = card.system.resources.model_dump() if card.system.resources else None
    return json.dumps([_measures(card), card.system.provider, card.system.version, resources], sort_keys=True)


def _kept_apart(one: BoardCard, others: Sequence[BoardCard], by: str) -> str | None:
    card = one.card
    if by not in figures_of(card):
        return f"it has no {by}: {card.absent.get(by.removesuffix('*'), 'not measured')}"
    partners = (
        other.card for other in others if not other.card.tuning.tuned and _system(other.card) == _system(card)
    )
    if card.tuning.tuned and not any(by in figures_of(partner) for partner in partners):
        why = (
            "the study says so" if card.tuning.stated else f"the study sets {'; '.join(card.tuning.settings)}"
        )
        return (
            f"it is tuned ({why}), and no untuned card here has {by} of the same system: provider, version, resources, "
            "workload and price book"
        )
    return None


def _ranked(groups: dict[Any, list[BoardCard]], by: str) -> Iterator[BoardGroup]:
    titles: list[str] = []
    for cards in groups.values():
        found = [(one, figures_of(one.card)[by]) for one in cards]
        higher = found[0][1].better == "higher"
        found.sort(key=lambda entry: (-entry[1].value if higher else entry[1].value, entry[0].file))
        standings = [Standing(one, of, _rank(of, [other for _, other in found])) for one, of in found]
        first = cards[0].card
        title = f"{first.workload.name}, scale factor {first.workload.scale:g}"
        title += f", price book {first.price_book}" if first.price_book else ""
        titles.append(title)
        if (number := titles.count(title)) > 1:
            title += f" ({number}: other options, or other files of the workload)"
        yield BoardGroup(title, standings)


def _rank(figure: CardFigure, others: Sequence[CardFigure]) -> int | None:
    """Return one more than the number of figures that are better for certain."""
    if figure.ci95 is None:
        return None
    low, high = figure.ci95
    better = [
        other
        for other in others
        if other.ci95 is not None
        and (other.ci95[0] > high if figure.better == "higher" else other.ci95[1] < low)
    ]
    return len(better) + 1


# --- as tables --------------------------------------------------------------------------------------------------


def tables_of(board: Board) -> list[Table]:
    """Make the tables of a board: the ranking of each group, its scores, and what is not ranked."""
    made = []
    for number, group in enumerate(board.groups, start=1):
        made += [_ranking(board.by, group, number), _scores(group, number)]
    return [table for table in (*made, _apart(board)) if table.rows]


def name_of(one: BoardCard) -> str:
    """Name a card: what was measured, by which study."""
    system = one.card.system
    return f"{system.version or system.provider or 'a system'}, study {one.card.run.study}"


def _ranking(by: str, group: BoardGroup, number: int) -> Table:
    rows: list[Row] = []
    for standing in group.standings:
        card, of = standing.of.card, standing.figure
        rows.append(
            {
                "rank": standing.rank,
                "system": card.system.version or card.system.provider,
                "study": card.run.study,
                "resources": resources_text(
                    card.system.resources.model_dump() if card.system.resources else None
                ),
                "value": of.value,
                **ends("value", of.ci95),
                "unit": of.unit,
                "median": of.median,
                "worst": of.worst,
                "repetitions": of.repetitions,
                "tuned": card.tuning.tuned,
                "settings": "; ".join(card.tuning.settings) or "none",
                "verdicts": _verdicts(card),
                "signature": standing.of.signature or "not signed",
                "nephoscope": card.nephoscope,
                "measured": card.run.origin[:10],
                "price_book": card.price_book,
                "file": standing.of.file,
            }
        )
    unit = group.standings[0].figure.unit
    columns = [
        Column("rank", "whole", "One more than the number of cards that are better for certain.", "rank"),
        text("system", "The version that the server tells, or its provider.", "system"),
        text("study", "The study.", "study"),
        text("resources", "What the system has.", "resources"),
        Column(
            "value", "number", f"{by}, in `unit`.", f"{by}, {unit}", spread("value", by_ends=by in BY_ENDS)
        ),
        *interval_of("value", by),
        text("unit", "The unit."),
        _repeated("median", "The median of the repetitions."),
        _repeated("worst", "The worst repetition."),
        whole("repetitions", "How many repetitions there are.", "repetitions"),
        Column("tuned", "flag", "Whether the system was tuned for the workload.", "tuned"),
        text("settings", "What the study sets of the server.", "settings"),
        text("verdicts", "Problems and warnings of the run.", "verdicts"),
        text("signature", "Who has signed the card.", "signature"),
        text("nephoscope", "The version that computed the figures.", "nephoscope"),
        text("measured", "The day on which the run began.", "measured"),
        text("price_book", "The price book."),
        text("file", "The card."),
    ]
    return Table(f"board-{number}", f"{group.title}, by {by}", columns, rows)


def _repeated(name: str, meaning: str) -> Column:
    def show(row: Row) -> str:
        return ABSENT if row[name] is None else figure(row[name])

    return Column(name, "number", meaning, name, show)


def _verdicts(card: Card) -> str:
    grave = [one.verdict for level in ("problem", "warning") for one in card.verdicts if one.level == level]
    number = len(card.warnings)
    told = [*grave, *([f"{number} warning{'s' if number > 1 else ''}"] if number else [])]
    return "; ".join(told) or "none"


def _scores(group: BoardGroup, number: int) -> Table:
    names = list(
        dict.fromkeys(
            name
            for name in (*SCORES, *(f"{one}*" for one in SCORES))
            for s in group.standings
            if name in s.of.card.scores
        )
    )
    rows: list[Row] = []
    for standing in group.standings:
        scores = standing.of.card.scores
        row: Row = {"study": standing.of.card.run.study, "measured": standing.of.card.run.origin[:10]}
        for name in names:
            found = scores.get(name)
            row |= {name: found.value, **ends(name, found.ci95)} if found is not None else {name: None}
        rows.append(row)
    columns = [
        text("study", "The study.", "study"),
        text("measured", "The day on which the run began.", "measured"),
    ]
    for name in names:
        about = DEFINITIONS[name.removesuffix("*")]
        show: Callable[[Row], str] = spread(name, by_ends=name in BY_ENDS)
        columns += [
            Column(name, "number", f"{about.meaning}, in {about.unit}.", f"{name}, {about.unit}", show),
            *interval_of(name, name),
        ]
    return Table(f"scores-{number}", f"All scores: {group.title}", columns, rows if names else [])


def _apart(board: Board) -> Table:
    rows = [{"file": one.file, "card": name_of(one), "why": why} for one, why in board.apart]
    columns = [
        text("card", "What was measured.", "card"),
        text("why", "Why it is not ranked.", "why it is not ranked"),
        text("file", "The card.", "file"),
    ]
    return Table("apart", "Not ranked", columns, rows)
