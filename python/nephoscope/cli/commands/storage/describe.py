"""``nephoscope storage describe``: what a storage tier sees, in tables and as a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from nephoscope.cli.consoles import ERR, OUT
from nephoscope.cli.options import FormatOption, JsonOption
from nephoscope.errors import InputError
from nephoscope.settings.units import describe_count
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.corpus import CapturedRun, Corpus
    from nephoscope.storage.describing import DescribedRun
    from nephoscope.tables.model import Table

_MOST = 2


def describe(
    corpora: Annotated[
        list[Path], typer.Argument(metavar="CORPUS [CORPUS]", help="A corpus, or two to lay side by side.")
    ],
    *,
    run: Annotated[
        list[int] | None,
        typer.Option(
            "--run",
            metavar="N",
            help="Describe this run alone; with two corpora, given twice for one of each.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with pictures of one run of each corpus."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write every table as CSV and Parquet into this folder."),
    ] = None,
    page_bytes: Annotated[
        int, typer.Option("--page-bytes", min=512, help="The page of the cache of the miss-ratio curve.")
    ] = 8192,
    sample: Annotated[
        float | None,
        typer.Option(
            "--sample",
            metavar="SHARE",
            help="Count this share of the pages for the miss-ratio curve; left out: all, of up to 5 million requests.",
        ),
    ] = None,
    form: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Show what a corpus has: intensity, burstiness, skew, sizes, processes, latencies, and its miss-ratio curve."""
    from nephoscope.storage.corpus import Corpus  # noqa: PLC0415
    from nephoscope.storage.described_tables import notes_of, tables_of  # noqa: PLC0415
    from nephoscope.storage.describing import describe_run  # noqa: PLC0415
    from nephoscope.storage.differences import differences  # noqa: PLC0415
    from nephoscope.tables.model import write_tables  # noqa: PLC0415

    _check(corpora, sample, html, out)
    groups = [
        [describe_run(corpus, one, page_bytes, sample) for one in chosen]
        for corpus, chosen in _chosen([Corpus(folder) for folder in corpora], run or [])
    ]
    runs = [one for group in groups for one in group]
    drawn = [group[0] for group in groups]
    tables, notes = tables_of(runs), notes_of(runs)
    if len(drawn) == _MOST:
        tables.append(differences(*drawn))
    _print(tables, notes, form, as_json=as_json)
    said = ERR if as_json or form == "markdown" else OUT
    if html is not None:
        _write_page(drawn, html)
        said.print(f"page: {html}")
    if out is not None:
        said.print(f"tables: {out} ({describe_count(len(write_tables(tables, out)), 'file')})")


def _check(corpora: Sequence[Path], sample: float | None, html: Path | None, out: Path | None) -> None:
    """Refuse what cannot be done before anything is read. Raises ``InputError``."""
    from nephoscope.files import check_named  # noqa: PLC0415
    from nephoscope.tables.model import check_folder  # noqa: PLC0415

    if out is not None:
        check_folder(out)
    if html is not None:
        check_named(html)
    if len(corpora) > _MOST:
        raise InputError(f"{len(corpora)} corpora are given; at most {_MOST} can be laid side by side")
    if sample is not None and not 0 < sample <= 1:
        raise InputError(f"--sample {sample:g} is no share: above 0, at most 1")


def _print(tables: Sequence[Table], notes: Sequence[str], form: str, *, as_json: bool) -> None:
    from nephoscope.tables.model import markdown, terminal  # noqa: PLC0415

    shown = [table for table in tables if table.shown]
    if as_json:
        sys.stdout.write(json_text({table.name: table.rows for table in tables}) + "\n")
    elif form == "markdown":
        sys.stdout.write(markdown(shown, notes))
    else:
        parts = [part for table in shown for part in (terminal(table), Text())]
        OUT.print(Group(*parts, *(Text(f"· {note}", style="cyan") for note in notes)))


def _chosen(corpora: Sequence[Corpus], numbers: Sequence[int]) -> list[tuple[Corpus, Sequence[CapturedRun]]]:
    """Choose the runs: all of each corpus, or those that are named. The first of each group is drawn."""
    from nephoscope.storage.describing import chosen_run  # noqa: PLC0415

    if not numbers:
        if empty := next((corpus for corpus in corpora if not corpus.runs), None):
            raise InputError(f"{empty.folder}: the corpus has no run")
        return [(corpus, corpus.runs) for corpus in corpora]
    if len(numbers) > _MOST:
        raise InputError(
            f"--run is given {len(numbers)} times: at most {_MOST} runs can be laid side by side"
        )
    most = max(len(corpora), len(numbers))
    pairs = zip(_each(corpora, most), _each(numbers, most), strict=True)
    return [(corpus, [chosen_run(corpus, number)]) for corpus, number in pairs]


def _each(given: Sequence[Any], most: int) -> Sequence[Any]:
    """Let one stand for two."""
    return [given[0]] * most if len(given) == 1 else given


def _write_page(runs: Sequence[DescribedRun], file: Path) -> None:
    """Write the page of some runs, with the tables of these alone."""
    from nephoscope.files import replacing  # noqa: PLC0415
    from nephoscope.report.page import render_with  # noqa: PLC0415
    from nephoscope.storage.described_page import TEMPLATE, build  # noqa: PLC0415
    from nephoscope.storage.described_tables import notes_of, tables_of  # noqa: PLC0415
    from nephoscope.storage.differences import differences  # noqa: PLC0415

    apart = [differences(*runs)] if len(runs) == _MOST else []
    view = build(runs, [*apart, *tables_of(runs)], notes_of(runs))
    with replacing(file) as page:
        page.write(render_with(TEMPLATE, view).encode())
