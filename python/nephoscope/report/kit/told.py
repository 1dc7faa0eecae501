"""The labels and scores of evaluators' sections, by constants beside their ``build``.

``NO_MIX`` are labels of phases that measure something else than a mix's throughput, ``HIDDEN`` labels by which the
evaluator finds its phases again, and ``HOW`` says of a score how it was measured.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from nephoscope import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.report.kit.run import Run

    How = Callable[[Run, Mapping[str, Any]], str]
    """Takes the run and the score's ``detail``; gives a few words, or none."""


@cache
def labels(kind: Literal["NO_MIX", "HIDDEN"]) -> frozenset[str]:
    """Return all labels of a kind."""
    return frozenset().union(*(getattr(module, kind, ()) for module in registry.shown("section")))


@cache
def how() -> Mapping[str, How]:
    """Return the functions that say how scores were measured, by the scores' names."""
    found: dict[str, How] = {}
    for module in registry.shown("section"):
        found |= getattr(module, "HOW", {})
    return found
