"""What a storage tier will see at another TPS or mix: a model's forecast with intervals, beside what it starts from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.statistics.distributions import t_quantile
from nephoscope.storage.asking import warnings
from nephoscope.storage.evaluating import foretold
from nephoscope.storage.features import STREAMS
from nephoscope.storage.models.base import VALIDATED, shares
from nephoscope.tables.model import Column, Row, Table, ends, interval_of, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nephoscope.storage.models.base import Model, Vector

_BYTES_PER_MB = 1e6


def answer(model: Model, start: Vector, rates: Vector, seconds: int, seed: int) -> Table:
    """Foretell what transactions a second by type bring, (T,), beside what the question starts from, (T,)."""
    before, after = (dict(_figures(model, one, seconds, seed)) for one in (start, rates))
    rows: list[Row] = []
    for name, value in after.items():
        ci95 = _interval(model, name, value)
        old = before[name]
        rows.append(
            {
                "figure": name,
                "start": old,
                "foretold": value,
                **ends("foretold", ci95),
                "ratio": value / old if old and value is not None else None,
            }
        )
    columns = [
        Column("figure", "text", "What is foretold, with its unit.", "figure"),
        Column(
            "start", "number", f"At the {start.sum():.4g} TPS that the question starts from.", "at the start"
        ),
        Column("foretold", "number", "As asked.", "as asked", spread("foretold", by_ends=True)),
        *interval_of("foretold", "what is foretold"),
        Column("ratio", "number", "As asked / at the start.", "ratio"),
    ]
    return Table("whatif", f"{_words(model, rates)}: a forecast by {model.name}", columns, rows)


def _words(model: Model, rates: Vector) -> str:
    mix = ", ".join(f"{name} {share:.3g}" for name, share in zip(model.types, shares(rates), strict=True))
    return f"{rates.sum():,.4g} TPS ({mix})"


def _figures(model: Model, rates: Vector, seconds: int, seed: int) -> list[tuple[str, float | None]]:
    found = foretold(model, rates, seconds, seed)
    mean = model.predict(rates).mean
    total, reads = found.rhythm.mean, found.read_share
    written = None if found.write_bytes is None else total * (1 - reads) * found.write_bytes / _BYTES_PER_MB
    return [
        ("requests/s", total),
        *((f"{stream} requests/s", float(part)) for stream, part in zip(STREAMS, mean, strict=True)),
        ("standard deviation of requests/s", found.rhythm.deviation),
        ("index of dispersion", found.rhythm.dispersion),
        ("lag-1 autocorrelation", found.rhythm.lag1),
        ("read share", reads),
        ("mean write size, B", found.write_bytes),
        ("written, MB/s", written),
    ]


_ERRORS = {
    "requests/s": "mean",
    "standard deviation of requests/s": "deviation",
    "read share": "read_share",
    "mean write size, B": "write_bytes",
}


def _interval(model: Model, name: str, value: float | None) -> tuple[float, float] | None:
    """Give the range that held 95 % of captured runs when their TPS level was left out; normal in the logarithm."""
    off = model.known.errors
    if value is None or name not in _ERRORS or not len(off):
        return None
    of = off[:, VALIDATED.index(_ERRORS[name])]
    half = float(t_quantile(len(of), 0.975) * np.sqrt(np.mean(of**2)))
    high = value * math.exp(half)
    return value * math.exp(-half), min(high, 1.0) if name == "read share" else high


def notes(model: Model, rates: Vector) -> Sequence[str]:
    """Say how far a forecast can be trusted."""
    said = warnings(model, rates)
    if not len(model.known.errors):
        said.append(
            "no intervals: the model was trained on fewer than three TPS levels, or without --validate"
        )
    elif said:
        said.append(
            "the intervals come from leaving out one captured TPS level at a time: here they are too narrow"
        )
    return said
