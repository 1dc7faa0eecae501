"""Commands about cards: a run's result that can be checked, and boards of several."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import FormatOption, JsonOption, RunArgument
from nephoscope.errors import InputError, MeasurementError, UndecidedError
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from nephoscope.cards.verifying import Verified

CARD = "card.json"
"""What a card is called in the run directory."""

SignersOption = Annotated[
    Path | None,
    typer.Option("--signers", metavar="FILE", help="OpenSSH's file of allowed signers: who may have signed."),
]


def card(
    run_directory: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help=f"Where to write it: {CARD} in the run directory if left out."
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="KEY", help="Sign it with an SSH key, such as ~/.ssh/id_ed25519."),
    ] = None,
) -> None:
    """Write a run's card: scores with intervals, study, versions, verdicts, hashes of its files, a signature."""
    from nephoscope.cards import ssh  # noqa: PLC0415
    from nephoscope.cards.card import signed_text, text_of  # noqa: PLC0415
    from nephoscope.cards.making import card_of  # noqa: PLC0415
    from nephoscope.files import check_named, write_named  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415
    from nephoscope.store.writer import write_whole  # noqa: PLC0415

    if out is not None:
        check_named(out)
    if key is not None:
        ssh.check_key(key)
    run = StoredRun(run_directory)
    made = card_of(run)
    if key is not None:
        signature = ssh.sign(signed_text(made.model_dump(mode="json")), key)
        made = made.model_copy(update={"signature": signature})
    if out is None:
        # Somebody else's folder may have a link of this name: it is replaced, and not followed.
        write_whole(run.folder / CARD, text_of(made))
    else:
        write_named(out, text_of(made))
    figures = describe_count(len(made.scores), "score")
    signed = "signed" if made.signature else "not signed; --key KEY signs it"
    OUT.print(
        f"card: {out or run_directory / CARD} ({figures}, {describe_count(len(made.files), 'file')}, {signed})"
    )


def verify(
    card_file: Annotated[Path, typer.Argument(metavar="CARD", help="A card.")],
    run_directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="Its run directory; the folder that the card is in, where that is one, if left out.",
        ),
    ] = None,
    signers: SignersOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check a card: its signature, the hashes of the run's files, and every figure computed anew from the run.

    Exit codes: 0 all is as the card says, 1 something differs, 2 bad input, 3 there is nothing to check it by.
    """
    from nephoscope.cards import ssh  # noqa: PLC0415
    from nephoscope.cards.card import read_card  # noqa: PLC0415
    from nephoscope.cards.verifying import verify as verify_card  # noqa: PLC0415
    from nephoscope.files import is_file  # noqa: PLC0415
    from nephoscope.store import FILES, StoredRun  # noqa: PLC0415

    if signers is not None:
        ssh.check_signers(signers)
    read, signed = read_card(card_file)
    if run_directory is None and is_file(card_file.parent / FILES.manifest):
        run_directory = card_file.parent
    run = None if run_directory is None else StoredRun(run_directory)
    found = verify_card(read, signed, run, signers)
    _show(found, as_json=as_json)
    if found.differs:
        raise MeasurementError(f"{card_file}: something is not as the card says")
    if not found.checked:
        raise UndecidedError(f"{card_file}: it is not signed and there is no run: nothing to check it by")


def _show(found: Verified, *, as_json: bool) -> None:
    from nephoscope.cli.listing import MARKS  # noqa: PLC0415

    if as_json:
        checks = [vars(check) for check in found.checks]
        sys.stdout.write(json_text({"holds": found.checked and not found.differs, "checks": checks}) + "\n")
        return
    for check in found.checks:
        mark, style = MARKS[check.level]
        OUT.print(Text(f"{mark} {check.said}", style=style))


def board(
    cards: Annotated[list[Path], typer.Argument(metavar="CARDS…", help="Cards, such as runs/*/card.json.")],
    *,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="FIGURE", help="What ranks: a score, or a point's figure such as 'RW c=16 TPS'."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the page.")] = Path(
        "board.html"
    ),
    signers: SignersOption = None,
    form: FormatOption = "table",
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="DIR", help="Also write the tables as CSV and Parquet.")
    ] = None,
) -> None:
    """Rank cards on one offline page: tuned systems beside untuned ones alone, the worst repetition by the median.

    --by names what ranks; O if left out, or the first score that there is.
    """
    from nephoscope.cards import ssh  # noqa: PLC0415
    from nephoscope.cards.board import read_board, tables_of  # noqa: PLC0415
    from nephoscope.cards.page import NOTES, TEMPLATE, build  # noqa: PLC0415
    from nephoscope.files import check_named, write_named  # noqa: PLC0415
    from nephoscope.report.page import render_with  # noqa: PLC0415
    from nephoscope.tables.model import check_folder, markdown, terminal, write_tables  # noqa: PLC0415

    check_named(out)
    if tables is not None:
        check_folder(tables)
    if signers is not None:
        ssh.check_signers(signers)
    if not cards:
        raise InputError("a board needs cards")
    found = read_board(cards, by, signers)
    made = tables_of(found)
    write_named(out, render_with(TEMPLATE, build(found)))
    if tables is not None:
        write_tables(made, tables)
    if form == "markdown":
        sys.stdout.write(markdown(made, NOTES))
    else:
        parts = [part for table in made for part in (Text(), terminal(table))]
        OUT.print(Group(*parts, Text(), Text(f"board: {out}", style="bold")))
