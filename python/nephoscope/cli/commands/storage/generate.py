"""``nephoscope storage generate``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.errors import InputError
from nephoscope.settings.units import describe_count, describe_seconds
from nephoscope.visible import visible

Arrivals = Literal["bursts", "stratified", "poisson"]
_ARRIVALS = (
    "Requests lie in bursts as captured (the default, if known), evenly in a second, or as a Poisson process."
)


def generate(
    source: Annotated[Path, typer.Argument(help="A corpus, or a model that was trained on one.")],
    out: Annotated[
        Path, typer.Option(help="What is written: NAME.csv, NAME.iolog (of fio), or the folder of a corpus.")
    ],
    run: Annotated[int | None, typer.Option(help="Of a corpus, the run that is taken.")] = None,
    tps: Annotated[str | None, typer.Option(help="Transactions a second, or a multiple: 2x.")] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|TYPE=SHARE", help="Of a model: a captured mix, or shares of types."),
    ] = None,
    *,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="How long; of a corpus as captured, if left out.")
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,…",
            help="Another part behind: tps, seconds, transition, run, and shares of types: tps=20000,seconds=600.",
        ),
    ] = None,
    course: Annotated[
        Path | None, typer.Option(help="A TOML file of parts, in place of these options.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same requests.")] = 1,
    arrivals: Annotated[Arrivals | None, typer.Option(help=_ARRIVALS)] = None,
    file: Annotated[
        str, typer.Option(help="In an iolog, the file or device that all requests go to.")
    ] = "nephoscope.data",
    threads: Annotated[int, typer.Option(min=0, help="Threads; 0 is one per core.")] = 0,
) -> None:
    """Generate requests: by a model, or as a captured run has them."""
    from nephoscope.storage.corpus import Corpus, find_corpus  # noqa: PLC0415
    from nephoscope.storage.generating import (  # noqa: PLC0415
        arrivals_of,
        batches,
        captured,
        compose,
        foreseen,
        part_of,
        plan,
        read_course,
        told,
    )
    from nephoscope.storage.models.files import load  # noqa: PLC0415
    from nephoscope.storage.outputs import write  # noqa: PLC0415

    words = {"run": run, "tps": tps, "seconds": seconds}
    first = _first({key: value for key, value in words.items() if value is not None}, mix or ())
    if course is not None and (first or then):
        raise InputError("--course says all parts: no --run, --tps, --mix, --seconds or --then goes with it")
    parts = read_course(course).parts() if course else [part_of(text) for text in (first, *(then or ()))]
    origin = captured(Corpus(source), parts, run) if find_corpus(source).is_dir() else foreseen(load(source))
    forecasts, total = compose(origin, parts, seed)
    found = batches(plan(origin, forecasts, seed, arrivals), threads or os.cpu_count() or 1)
    made = {"seed": seed, "arrivals": arrivals_of(origin, arrivals), "parts": told(parts)}
    count = write(out, origin, found, seconds=total, made=made, file=file)
    _say(out, count, total)


def _first(words: Mapping[str, object], mix: Sequence[str]) -> str:
    """Write the first part as ``--then`` has the others."""
    mixed = [word if "=" in word else f"mix={word}" for text in mix for word in text.split(",")]
    return ",".join([*(f"{key}={value}" for key, value in words.items()), *mixed])


def _say(out: Path, count: int, seconds: int) -> None:
    what = f"{describe_count(count, 'request')} in {describe_seconds(seconds)}"
    OUT.print(f"{visible(str(out))}: {what}", highlight=False)
