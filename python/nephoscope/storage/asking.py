"""What a user asks of a model: ``--tps 2x --mix new_order=0.6``; and how far that is from what it was trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from nephoscope.errors import InputError
from nephoscope.storage.models.base import SAME_LEVEL, shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.storage.models.base import Known, Model, Vector

NEAR = 0.01
"""A mix that differs by less than this part of the transactions from one within the captured range is within."""


def base(model: Model, mix: str | None = None) -> Vector:
    """Give what questions start from: transactions a second by type, (T,), of the highest TPS level captured.

    Args:
        model: A trained model.
        mix: The name of a captured mix; the mean of all at that level if left out.

    Raises:
        InputError: no run had a mix of this name.

    """
    known = model.known
    places = [at for at, name in enumerate(known.mixes) if mix in (None, name)]
    if not places:
        names = ", ".join(sorted(set(filter(None, known.mixes)))) or "none"
        raise InputError(f"no run that the model learned from had the mix {mix!r}; allowed: {names}")
    targets = known.targets[places]
    highest = known.rates[places][targets >= targets.max() / SAME_LEVEL]
    return np.asarray(highest.mean(axis=0))


def asked(model: Model, tps: str | None, mix: Sequence[str]) -> tuple[Vector, Vector]:
    """Read a question; gives what it starts from and what is asked for, transactions a second by type, (T,) each.

    Args:
        model: A trained model.
        tps: A number, or a multiple of what it starts from: ``2x``.
        mix: Shares of types, ``new_order=0.6``, several in one text by commas; the types that are not named share
            the rest as they did. Or the name of a captured mix.

    Raises:
        InputError: any of it cannot be read, or there is no such type.

    """
    words = [word.strip() for text in mix for word in text.split(",") if word.strip()]
    names = [word for word in words if "=" not in word]
    if len(names) > 1:
        raise InputError(f"--mix names {' and '.join(names)}; allowed: one captured mix, and shares of types")
    start = base(model, names[0] if names else None)
    given = dict(_share(word, model.types) for word in words if "=" in word)
    total = float(start.sum())
    rates = (total if tps is None else rate(tps, total)) * _mixed(shares(start), given, model.types)
    return start, rates


def rate(text: str, start: float) -> float:
    """Read transactions a second: a number, or a multiple of what it starts from: ``2x``. Raises ``InputError``."""
    multiple = text.strip().lower().endswith("x")
    try:
        value = float(text.strip().lower().removesuffix("x"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InputError(
            f"--tps {text}: allowed: transactions a second, or a multiple such as 2x; more than 0"
        )
    return value * start if multiple else value


def _share(word: str, types: Sequence[str]) -> tuple[str, float]:
    name, _, text = word.partition("=")
    if name not in types:
        raise InputError(f"--mix {word}: there is no transaction {name!r}; allowed: {', '.join(types)}")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise InputError(f"--mix {word}: allowed: a share from 0 to 1")
    return name, value


def _mixed(start: Vector, given: Mapping[str, float], types: Sequence[str]) -> Vector:
    """Set some shares, and let the other types fill up to 1 in proportion."""
    total = sum(given.values())
    if total > 1 + NEAR:
        raise InputError(f"--mix: the shares add up to {total:.4g}; allowed: at most 1")
    fixed = np.array([name in given for name in types])
    mixed = np.array([given.get(name, 0.0) for name in types])
    rest = np.where(fixed, 0.0, start)
    left = max(0.0, 1 - total)
    if rest.sum():
        return np.asarray(mixed + left * rest / rest.sum())
    if left > NEAR:
        raise InputError(
            f"--mix: the shares add up to {total:.4g}, and no other type was captured; allowed: 1"
        )
    return shares(mixed)


@dataclass(frozen=True)
class Reach:
    """How far a question lies outside what a model was trained on."""

    tps: float
    """TPS asked for / the nearest captured; 1 within the captured range."""
    mix: float
    """The least part of the transactions that would have to be of another type for the mix to lie among the captured
    ones (in their convex hull); 0 within."""
    nearest: Vector
    """That mix: (T,)."""


def reach(known: Known, rates: Vector) -> Reach:
    """Tell how far a question lies outside: transactions a second by type, (T,)."""
    tps, captured = float(rates.sum()), known.rates.sum(axis=1)
    nearest_tps = float(np.clip(tps, captured.min(), captured.max()))
    apart, nearest = _to_hull(shares(rates), shares(known.rates))
    return Reach(tps / nearest_tps, apart, nearest)


def _to_hull(point: Vector, corners: Vector) -> tuple[float, Vector]:
    """Give the total variation distance of a mix, (T,), from the convex hull of others, (R, T), and the nearest mix."""
    runs, types = corners.shape
    cost = np.concatenate([np.zeros(runs), np.full(2 * types, 0.5)])
    equal = np.block(
        [[corners.T, np.eye(types), -np.eye(types)], [np.ones((1, runs)), np.zeros((1, 2 * types))]]
    )
    found = linprog(cost, A_eq=equal, b_eq=[*point, 1.0], method="highs")
    weights = np.asarray(found.x, dtype=float)
    return float(cost @ weights), np.asarray(corners.T @ weights[:runs])


def warnings(model: Model, rates: Vector) -> list[str]:
    """Say what of a question is extrapolated, and by how much."""
    far = reach(model.known, rates)
    captured = model.known.rates.sum(axis=1)
    said = []
    if abs(math.log(far.tps)) > math.log(SAME_LEVEL):
        side = f"{far.tps:.3g} times the highest" if far.tps > 1 else f"{far.tps:.3g} of the lowest"
        said.append(
            f"extrapolated: {rates.sum():,.4g} TPS is {side} captured ({captured.min():,.4g} to "
            f"{captured.max():,.4g} TPS): that the server still behaves as it did there is an assumption"
        )
    if far.mix > NEAR:
        mix, seen = shares(rates), shares(model.known.rates)
        off = [
            f"{name} {share:.3g} (captured {low:.3g} to {high:.3g})"
            for name, share, low, high in zip(
                model.types, mix, seen.min(axis=0), seen.max(axis=0), strict=True
            )
            if not low - NEAR <= share <= high + NEAR
        ]
        nearest = ", ".join(
            f"{name} {share:.3g}" for name, share in zip(model.types, far.nearest, strict=True)
        )
        said.append(
            f"extrapolated: the mix lies outside the captured ones by {100 * far.mix:.3g} % of the transactions"
            f"{': ' if off else ''}{', '.join(off)}; the nearest within is {nearest}"
        )
    return said
