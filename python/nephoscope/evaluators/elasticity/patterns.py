"""Patterns of load: shares of the saturation concurrency τ, slot by slot (CloudyBench, section II-C)."""

from __future__ import annotations

import random
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from nephoscope.settings.base import Settings

PATTERNS: dict[str, tuple[float, ...]] = {
    "single-peak": (0.0, 1.0, 0.0),
    "large-spike": (0.1, 0.8, 0.1),
    "single-valley": (0.4, 0.2, 0.4),
    "zero-valley": (0.5, 0.0, 0.5),
}
"""The paper's four, in its order."""

Share = Annotated[float, Field(ge=0, le=10)]


class ParetoSettings(Settings):
    """A pattern whose shares are drawn from a Pareto law, and scaled so that they add up to 1."""

    slots: Annotated[int, Field(ge=1, le=1000)] = 3
    """How many slots it has."""
    shape: Annotated[float, Field(gt=0, le=100)] = 1.16
    """The law's shape: the smaller it is, the more one slot stands out; 1.16 is the rule of 80 to 20."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The seed of the draw: it stands in the pattern's name."""

    def shares(self) -> tuple[float, ...]:
        """Draw: by inversion, so that a seed means the same in every version."""
        source = random.Random(self.seed)  # noqa: S311 - not a secret
        drawn = [(1.0 - source.random()) ** (-1.0 / self.shape) for _ in range(self.slots)]
        return tuple(value / sum(drawn) for value in drawn)


class CustomSettings(Settings):
    """A pattern of one's own."""

    name: Annotated[str, Field(pattern=r"^[^|,\x00-\x1f]{1,40}$")]
    """Its name in the report; without ``|`` and commas, at most 40 characters."""
    shares: Annotated[list[Share], Field(min_length=1, max_length=1000)]
    """The share of τ in each slot."""

    @field_validator("shares")
    @classmethod
    def _has_load(cls, shares: list[float]) -> list[float]:
        if not any(shares):
            raise ValueError("a pattern needs a slot with a load")
        return shares


PatternName = Literal["single-peak", "large-spike", "single-valley", "zero-valley"]


def _tag(value: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    """Tell the kind of a pattern, so that a message is about that kind alone."""
    if isinstance(value, str):
        return "PatternName"
    own = isinstance(value, CustomSettings) or (
        isinstance(value, dict) and ("shares" in value or "name" in value)
    )
    return "CustomSettings" if own else "ParetoSettings"


PatternSetting = Annotated[
    Annotated[PatternName, Tag("PatternName")]
    | Annotated[CustomSettings, Tag("CustomSettings")]
    | Annotated[ParetoSettings, Tag("ParetoSettings")],
    Discriminator(_tag),
]


def resolve(pattern: PatternSetting) -> tuple[str, tuple[float, ...]]:
    """Return a pattern's name and its shares."""
    if isinstance(pattern, CustomSettings):
        return pattern.name, tuple(pattern.shares)
    if isinstance(pattern, ParetoSettings):
        return f"pareto seed {pattern.seed}", pattern.shares()
    return pattern, PATTERNS[pattern]


def sessions(share: float, tau: int) -> int:
    """How many sessions a share of τ is: none only where the share is."""
    return max(round(share * tau), 1) if share > 0 else 0
