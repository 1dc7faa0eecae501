"""What is registered by entry points: providers of systems, and evaluators. Third parties add theirs the same way."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from nephoscope.evaluators.base import Evaluator
    from nephoscope.systems.base import Provider


@cache
def _points(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=f"nephoscope.{kind}"))}


def names(kind: str) -> tuple[str, ...]:
    """List what is registered: ``systems`` or ``evaluators``."""
    return tuple(_points(kind))


def _load(kind: str, name: str) -> Any:  # noqa: ANN401 - whatever the entry point names
    try:
        return _points(kind)[name].load()
    except KeyError:
        raise InputError(f"{kind}: there is no {name!r}; registered are {', '.join(names(kind))}") from None


def provider(name: str) -> type[Provider]:
    """Return the class of a provider."""
    loaded: type[Provider] = _load("systems", name)
    return loaded


def evaluator(name: str) -> type[Evaluator]:
    """Return the class of an evaluator."""
    loaded: type[Evaluator] = _load("evaluators", name)
    return loaded
