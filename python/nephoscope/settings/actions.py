"""The actions on a system."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Action(StrEnum):
    """An action on a system while it is measured."""

    RESTART = "restart"
    """End a node in good order and start it again."""
    KILL = "kill"
    """End a node at once, as a crash does; whoever keeps it alive may bring it back."""
    STOP = "stop"
    """End a node in good order, for now."""
    START = "start"
    """Start a node that was stopped or killed."""
    PROMOTE = "promote"
    """Make a read-only node the one that takes writes; the old one follows it."""
    PAUSE = "pause"
    """Let a node stand still, with its connections open."""
    RESUME = "resume"
    """Let a paused node go on."""
    ADD_NODE = "add_node"
    """Add a read-only node; done when it serves."""
    REMOVE_NODE = "remove_node"
    """Take a read-only node away."""
    RESIZE = "resize"
    """Give the nodes other resources."""
    SET = "set"
    """Set parameters of the server, restarting it where they need that."""


FaultName = Literal["restart", "kill", "node-loss", "crash", "promote", "pause"]
"""A fault of a node, as a study names it."""

FAULTS: Mapping[FaultName, tuple[Action, ...]] = {
    "restart": (Action.RESTART,),
    "kill": (Action.KILL, Action.START),
    "node-loss": (Action.KILL,),
    "crash": (Action.KILL, Action.PROMOTE),
    "promote": (Action.PROMOTE,),
    "pause": (Action.PAUSE, Action.RESUME),
}
"""The actions on a node, in their order."""
