"""The settings of a search for the highest rate at which something holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.settings.loads import HIGHEST_RATE
from nephoscope.settings.registered import MeasureSettings

if TYPE_CHECKING:
    from typing import Self

Rate = Annotated[float, Field(gt=0, le=HIGHEST_RATE)]
"""Arrivals per second."""


class RateSearchSettings(MeasureSettings):
    """The bounds of a search over rates, and how arrivals are spread."""

    start: Rate = 100.0
    """The first rate, in arrivals a second. It is doubled while it holds, or halved until it holds."""
    least: Rate = 10.0
    """The lowest rate that is tried."""
    most: Rate = 100_000.0
    """The highest rate that is tried."""
    precision: Annotated[float, Field(ge=0.01, le=1)] = 0.05
    """Narrowing ends when the lowest rate that does not hold exceeds the highest that does by this share at most."""
    arrivals: Literal["constant", "poisson"] = "poisson"
    """How the arrivals are spread: evenly, or as a Poisson process."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.least <= self.start <= self.most:
            raise ValueError(
                f"start ({self.start:g}) must lie between least ({self.least:g}) and most ({self.most:g})"
            )
        return self
