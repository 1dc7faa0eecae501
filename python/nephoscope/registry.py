"""What is registered by entry points: providers of systems, and evaluators. Third parties add theirs the same way."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nephoscope.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType


LAST = 100
"""Where what an evaluator shows stands, if its ``PLACE`` does not say; ours have 10 to 80."""


@cache
def _points(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=f"nephoscope.{kind}"))}


def names(kind: str) -> tuple[str, ...]:
    """List what is registered: ``systems`` or ``evaluators``."""
    return tuple(_points(kind))


def load(kind: str, name: str) -> Any:  # noqa: ANN401 - whatever the entry point names
    """Return the class that is registered under a name. Raises ``InputError``."""
    try:
        return _points(kind)[name].load()
    except KeyError:
        raise InputError(f"{kind}: there is no {name!r}; registered are {', '.join(names(kind))}") from None


@cache
def shown(kind: str) -> tuple[ModuleType, ...]:
    """Return what evaluators have for showing, of a kind: ``tables`` or ``section``, in the order of their ``PLACE``.

    It is the module of this name in the folder of the evaluator, where there is one; the evaluator itself is not
    imported. Raises ``InputError`` for one that cannot be imported.
    """
    found = []
    for point in _points("evaluators").values():
        folder = point.module.rpartition(".")[0]
        name = f"{folder}.{kind}"
        try:
            if folder and find_spec(name) is not None:
                found.append(import_module(name))
        except Exception as error:
            raise InputError(f"evaluators: {name} of {point.name!r} cannot be imported: {error}") from error
    return tuple(sorted(found, key=lambda module: (getattr(module, "PLACE", LAST), module.__name__)))
