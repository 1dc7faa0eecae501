"""``nephoscope storage train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.errors import InputError
from nephoscope.settings.units import describe_count

if TYPE_CHECKING:
    from nephoscope.storage.corpus import Corpus
    from nephoscope.storage.features import Features

CorpusArgument = Annotated[
    Path, typer.Argument(help="A corpus, as storage capture or storage import makes it.")
]
SetModelOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the model, such as trees=300."),
]


def train(
    corpus: CorpusArgument,
    model: Annotated[
        str, typer.Option(help="Which model: mixture, constant, poisson, forest, lstm, paper.")
    ] = "mixture",
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the model is written.")] = Path(
        "model.npz"
    ),
    settings: SetModelOption = None,
    *,
    validate: Annotated[
        bool, typer.Option(help="Leave out each TPS level once, for the intervals of storage whatif.")
    ] = True,
) -> None:
    """Learn from a corpus what its storage tier sees at which TPS and mix."""
    from nephoscope.files import check_named  # noqa: PLC0415
    from nephoscope.storage.corpus import Corpus  # noqa: PLC0415
    from nephoscope.storage.evaluating import trained  # noqa: PLC0415
    from nephoscope.storage.models.files import save  # noqa: PLC0415

    check_named(out)
    source = Corpus(corpus)
    runs = features_of(source)
    made = trained(model, runs, model_settings(settings), source, validate=validate)
    save(made, out)
    learned = f"{describe_count(len(runs), 'run')}, {describe_count(len(made.cells), 'cell')}"
    OUT.print(f"{made.name}: learned from {learned}; written to {out}", markup=False)


def features_of(corpus: Corpus) -> list[Features]:
    """Read X, Y and Z of all runs. Raises ``InputError``."""
    from nephoscope.storage.features import features  # noqa: PLC0415

    types = corpus.types
    if not types:
        raise InputError(f"{corpus.folder}: there are no transactions in it: a model needs them")
    return [features(corpus, run, types) for run in corpus.runs]


def model_settings(texts: list[str] | None) -> dict[str, float]:
    """Read settings of a model. Raises ``InputError``."""
    found = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InputError(f"--set {text}: allowed: KEY=NUMBER") from None
    return found
