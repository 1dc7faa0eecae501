"""``nephoscope storage whatif``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import FormatOption, JsonOption
from nephoscope.visible import json_text

ModelArgument = Annotated[Path, typer.Argument(help="A model, as storage train writes it.")]
TpsOption = Annotated[
    str | None,
    typer.Option("--tps", help="Transactions a second, or a multiple of the highest level captured: 2x."),
]
MixOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mix",
        metavar="TYPE=SHARE",
        help="Shares of types, new_order=0.6,payment=0.3; the others share the rest as they did. Or a captured mix.",
    ),
]


def whatif(
    model: ModelArgument,
    *,
    tps: TpsOption = None,
    mix: MixOption = None,
    seconds: Annotated[int, typer.Option(min=2, help="How many seconds are foretold.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The seed of what is drawn.")] = 0,
    form: FormatOption = "table",
    as_json: JsonOption = False,
) -> None:
    """Foretell what the storage tier will see at another TPS or mix, with intervals; says where it extrapolates."""
    from nephoscope.storage.asking import asked  # noqa: PLC0415
    from nephoscope.storage.models.files import load  # noqa: PLC0415
    from nephoscope.storage.whatif import answer, notes  # noqa: PLC0415
    from nephoscope.tables.model import markdown, terminal  # noqa: PLC0415

    trained = load(model)
    start, rates = asked(trained, tps, mix or ())
    table, said = answer(trained, start, rates, seconds, seed), notes(trained, rates)
    if as_json:
        sys.stdout.write(json_text({"figures": list(table.rows), "warnings": list(said)}) + "\n")
    elif form == "markdown":
        sys.stdout.write(markdown([table], [f"warning: {one}" for one in said]))
    else:
        OUT.print(terminal(table))
        for one in said:
            OUT.print(Text(f"! {one}", style="yellow"))
