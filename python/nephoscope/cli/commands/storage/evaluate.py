"""``nephoscope storage evaluate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from nephoscope.cli.commands.storage.train import CorpusArgument, SetModelOption, features_of, model_settings
from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import FormatOption, JsonOption
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.evaluating import Evaluation


def evaluate(
    corpus: CorpusArgument,
    *,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="A model, beside the baselines; may be repeated.")
    ] = None,
    levels: Annotated[
        int | None,
        typer.Option(
            "--levels", help="How many of the highest TPS levels are held out; a third if left out."
        ),
    ] = None,
    mix: Annotated[
        str | None, typer.Option("--mix", help="The mix that is held out; each in turn if left out.")
    ] = None,
    settings: SetModelOption = None,
    curves: Annotated[
        bool,
        typer.Option(help="Generate requests, and compare their miss-ratio curves with the captured ones."),
    ] = True,
    form: FormatOption = "table",
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", metavar="DIR", help="Also write tables as CSV and Parquet into this folder."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page with the tables, and the best and the worst forecast drawn.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train models on a part of a corpus, and show how near they come to the rest."""
    from nephoscope.files import check_named  # noqa: PLC0415
    from nephoscope.storage import evaluation_tables  # noqa: PLC0415
    from nephoscope.storage.corpus import Corpus  # noqa: PLC0415
    from nephoscope.storage.curves import Curves  # noqa: PLC0415
    from nephoscope.storage.evaluating import evaluate as evaluated  # noqa: PLC0415
    from nephoscope.tables.model import check_folder, write_tables  # noqa: PLC0415

    if tables is not None:
        check_folder(tables)
    if html is not None:
        check_named(html)
    source = Corpus(corpus)
    runs = features_of(source)
    made = Curves(source) if curves else None
    known = model_settings(settings)
    found = evaluated(runs, model or ["mixture"], levels=levels, mix=mix, settings=known, curves=made)
    if tables is not None:
        write_tables(evaluation_tables.kept(found), tables)
    if html is not None:
        _write_page(found, source, html)
    _print(found, form, as_json=as_json)
    if html is not None:
        (ERR if as_json or form == "markdown" else OUT).print(f"page: {html}", markup=False)


def _print(found: Evaluation, form: str, *, as_json: bool) -> None:
    from nephoscope.storage import evaluation_tables  # noqa: PLC0415
    from nephoscope.tables.model import markdown, terminal  # noqa: PLC0415

    notes = evaluation_tables.notes(found)
    if as_json:
        rows = {table.name: list(table.rows) for table in evaluation_tables.kept(found)}
        sys.stdout.write(json_text({**rows, "notes": notes}) + "\n")
    elif form == "markdown":
        sys.stdout.write(markdown(evaluation_tables.shown(found), notes))
    else:
        for table in evaluation_tables.shown(found):
            OUT.print(terminal(table), Text(), sep="\n")
        for note in notes:
            OUT.print(Text(f"· {note}", style="cyan"))


def _write_page(found: Evaluation, corpus: Corpus, file: Path) -> None:
    from nephoscope.files import replacing  # noqa: PLC0415
    from nephoscope.report.page import render_with  # noqa: PLC0415
    from nephoscope.storage.evaluated_page import TEMPLATE, build  # noqa: PLC0415

    with replacing(file) as page:
        page.write(render_with(TEMPLATE, build(found, corpus)).encode())
