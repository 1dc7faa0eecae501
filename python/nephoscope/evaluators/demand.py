"""What a step of a study asks of a server, and for how many sessions there is room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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


@dataclass(frozen=True)
class Room:
    """How many sessions of a load one server takes."""

    sessions: int
    """At the most, with nobody else connected."""
    free: int
    """Of these, not taken when it was asked."""
    words: str
    """The limit that says so, in the server's terms."""

    def shared(self, highest: float) -> Room:
        """Give the room for a load of which so many times as many sessions, or such a share, connect here."""
        return Room(int(self.sessions / highest), int(self.free / highest), self.words)


class RoomSource(Protocol):
    """Knows how many sessions the servers take."""

    def of(self, mix: Mapping[str, float]) -> Room | None:
        """Give the room for the sessions of the first tenant, on the server that has least of it; None if unknown."""
