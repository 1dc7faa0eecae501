"""What a step of a study asks of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Demand:
    """A step of an evaluator, and the sessions that it wants."""

    step: str
    """What messages call it: the name of its phase."""
    sessions: tuple[int, ...]
    """Of each tenant; those that are not named want none."""
    mix: Mapping[str, float]
    """The weights of the transactions: they tell which role connections are of."""
