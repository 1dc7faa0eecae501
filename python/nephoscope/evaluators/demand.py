"""The sessions that a step of a study wants, and those that a server accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Demand:
    """A step of an evaluator, and the sessions that it wants."""

    step: str
    """The name of its phase, for messages."""
    sessions: tuple[int, ...]
    """By tenant; others want none."""
    mix: Mapping[str, float]
    """The weights of the transactions, which decide the roles of connections."""


@dataclass(frozen=True)
class Room:
    """How many sessions of a load one server accepts."""

    sessions: int
    """At the most, with nobody else connected."""
    free: int
    """Of these, not taken when it was asked."""
    words: str
    """The limit that says so, in the server's terms."""

    def shared(self, highest: float) -> Room:
        """Return the room for a load with ``highest`` connections here per session, below 1 for a share."""
        return Room(int(self.sessions / highest), int(self.free / highest), self.words)


class RoomSource(Protocol):
    """Knows how many sessions the servers take."""

    def of(self, mix: Mapping[str, float]) -> Room | None:
        """Return the room for the first tenant's sessions on the server with the least; None if unknown."""
