"""Tables that registered providers and evaluators extend by keys of their own."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
)

from nephoscope.settings.base import Settings
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import one_as_list


class SystemSettings(Settings):
    """The ``[system]`` table of a study; each provider adds its own keys."""

    provider: str
    """Who gives the system: ``nephoscope systems`` lists the providers."""
    resources: Resources | None = None
    """What the system was given, for its cost: see [resources](systems.md#resources)."""


def _distinct(scales: list[float]) -> list[float]:
    if len(set(scales)) < len(scales):
        raise ValueError("a scale factor is there more than once")
    return scales


Scales = Annotated[
    list[Annotated[float, Field(gt=0, le=1e6)]],
    BeforeValidator(one_as_list),
    AfterValidator(_distinct),
    Field(min_length=1, max_length=20),
]
"""Scale factors, each once."""


class MeasureSettings(Settings):
    """An entry of ``[[measure]]``; each evaluator adds its own keys."""

    evaluator: str
    scales: Scales | None = None
    """At which of `workload.scales` it is measured; at all of them if left out."""
