"""The models by name. A model is a file here and a line in ``RECIPES``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError
from nephoscope.storage.models.base import Intensity, Known, Model, Placement
from nephoscope.storage.models.drift import fit_drift
from nephoscope.storage.models.growth import by_distance, fit_growth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nephoscope.storage.models.base import Training


@dataclass(frozen=True)
class Recipe:
    """Which two halves make a model: module and class of each."""

    intensity: str
    placement: str
    about: str
    """What it is, in a line."""
    extras: Sequence[str] = ()
    """The optional dependencies of nephoscope that fitting it takes."""
    of_one_run: bool = False
    """Whether it foretells only the run that it was told."""


RECIPES: Mapping[str, Recipe] = {
    "mixture": Recipe(
        "mixture:MixtureIntensity",
        "mixture:MixturePlacement",
        "types' parts, and rescaled shapes of the runs",
    ),
    "constant": Recipe(
        "constant:ConstantIntensity", "constant:ConstantPlacement", "requests a transaction, pooled"
    ),
    "poisson": Recipe(
        "poisson:PoissonIntensity", "poisson:ZipfPlacement", "Poisson at the mean and Zipf's law, as of YCSB"
    ),
    "oracle": Recipe(
        "oracle:OracleIntensity", "oracle:OraclePlacement", "the run itself, drawn anew", of_one_run=True
    ),
    "forest": Recipe(
        "mixture:MixtureIntensity",
        "forest:ForestPlacement",
        "the paper's random forest for Z, mixture's Y",
        extras=("forest",),
    ),
    "lstm": Recipe(
        "lstm:LstmIntensity",
        "mixture:MixturePlacement",
        "the paper's LSTM for Y, mixture's Z",
        extras=("neural",),
    ),
    "paper": Recipe(
        "lstm:LstmIntensity",
        "forest:ForestPlacement",
        "both models of the paper",
        extras=("neural", "forest"),
    ),
}
"""The models by name."""

_OF_EXTRAS = {"forest": ("sklearn",), "neural": ("jax", "optax")}


def missing(name: str) -> Sequence[str]:
    """List the optional dependencies that a model needs for fitting and that are not installed."""
    wanted = recipe(name).extras
    return [extra for extra in wanted if any(find_spec(module) is None for module in _OF_EXTRAS[extra])]


def recipe(name: str) -> Recipe:
    """Give the recipe of a model. Raises ``InputError``."""
    try:
        return RECIPES[name]
    except KeyError:
        raise InputError(f"there is no model {name!r}; allowed: {', '.join(RECIPES)}") from None


def halves(name: str, settings: Mapping[str, float] | None = None) -> tuple[Intensity, Placement]:
    """Make the two halves of a model, untrained, with settings that either has.

    Raises:
        InputError: there is no such model, or neither half has a setting of this name.

    """
    made = recipe(name)
    classes = [_load(path) for path in (made.intensity, made.placement)]
    allowed: list[dict[str, Any]] = [getattr(one, "SETTINGS", {}) for one in classes]
    given = dict(settings or {})
    if unknown := given.keys() - set().union(*allowed):
        known = ", ".join(sorted(set().union(*allowed))) or "none"
        raise InputError(f"{name} has no setting {min(unknown)!r}; allowed: {known}")
    intensity, placement = (
        one(**{key: type(default)(given[key]) for key, default in of.items() if key in given})
        for one, of in zip(classes, allowed, strict=True)
    )
    return intensity, placement


def _load(path: str) -> Any:  # noqa: ANN401 - a class of either half
    module, name = path.split(":")
    return getattr(import_module(f"nephoscope.storage.models.{module}"), name)


def train(name: str, data: Training, settings: Mapping[str, float] | None = None) -> Model:
    """Fit a model.

    Raises:
        InputError: there is no such model or setting, or an optional dependency is not installed.

    """
    if absent := missing(name):
        raise InputError(
            f"the model {name} needs what is not installed: pip install 'nephoscope[{','.join(absent)}]'"
        )
    intensity, placement = halves(name, settings)
    intensity.fit(data)
    placement.fit(data)
    model = _joined(name, intensity, placement, data)
    growth = fit_growth(data) if placement.drifts else None
    if growth is None:
        return model
    # The same by distances from the ends of what grows: taken where it foretells left-out runs better.
    near = by_distance(data, growth.relations)
    moving = replace(_joined(name, intensity, placement.refitted(near), near), growth=growth)
    return moving if moving.apart(data) < model.apart(data) else model


def _joined(name: str, intensity: Intensity, placement: Placement, data: Training) -> Model:
    """Join two halves that are fitted, and learn what of both changes with time."""
    known = Known(data.rates, data.targets, data.mixes)
    drift = fit_drift(data, intensity.mean, placement.weights) if placement.drifts else None
    sizes = data.write_bytes.pooled() if placement.any_page else data.write_bytes
    return Model(name, intensity, placement, data.types, data.cells, sizes, known, drift=drift)
