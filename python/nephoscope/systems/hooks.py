"""A user's own shell commands, as what can be done to a system: each within a time limit, and nothing left after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError, field_validator

from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.base import Settings
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration
from nephoscope.systems.shell import Shell, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST_PERIOD_S = 0.05
"""Starting a shell takes some milliseconds itself."""

Command = Annotated[str | None, Field(min_length=1)]


class HookSettings(Settings):
    """``[system.hooks]``: shell commands, each for ``/bin/sh -c``, that do something to the system."""

    timeout: Duration = 300.0
    """A command that takes longer is killed with all that it has started, and has failed."""
    restart: Command = None
    """Restart a node in good order; like all of these it ends with exit code 0 when that is done."""
    kill: Command = None
    """End a node as a crash does."""
    stop: Command = None
    """End a node in good order."""
    start: Command = None
    """Start a node that was stopped or killed."""
    promote: Command = None
    """Make a read-only node the one that takes writes."""
    pause: Command = None
    """Let a node stand still, with its connections open."""
    resume: Command = None
    """Let a paused node go on."""
    add_node: Command = None
    """Add a read-only node, and print where it is: see [nodes that come](#nodes-that-come). Done when it serves."""
    remove_node: Command = None
    """Take a read-only node away: the one of the name that `add_node` has printed."""
    resize: Command = None
    """Give the nodes the resources that stand in the environment."""
    set: Command = None
    """Set the parameters of the server that stand in the environment."""
    allocation: Command = None
    """Print what the system is given now: a JSON object with the keys of `[system.resources]`."""
    allocation_period: Duration = 1.0
    """How often `allocation` is asked while patterns are played, at least 50 ms: no scaling time is known better."""

    @field_validator("allocation_period")
    @classmethod
    def _long_enough(cls, seconds: float) -> float:
        if seconds < _LEAST_PERIOD_S:
            raise ValueError("a period of asking must be 50 ms or more")
        return seconds

    def command(self, name: str) -> str | None:
        """Return the command of an action, or of ``allocation``."""
        command: str | None = getattr(self, name)
        return command


class Hooks:
    """Runs the commands."""

    def __init__(self, settings: HookSettings) -> None:
        """Take the commands."""
        self._settings = settings
        self._shell = Shell(settings.timeout)

    def actions(self) -> frozenset[Action]:
        """Tell for what there are commands."""
        return frozenset(action for action in Action if self._settings.command(action.value))

    def act(
        self,
        action: Action,
        node: str | None,
        resources: Resources | None,
        settings: Mapping[str, bool | int | float | str] | None,
    ) -> str:
        """Run the command of an action; return what it printed.

        Raises:
            MeasurementError: there is none, or it failed, or took too long.

        """
        environment = {"NEPHOSCOPE_ACTION": action.value, "NEPHOSCOPE_NODE": node or ""}
        if resources is not None:
            given = resources.model_dump().items()
            environment |= {f"NEPHOSCOPE_{name.upper()}": str(value) for name, value in given}
        if settings is not None:
            environment["NEPHOSCOPE_SETTINGS"] = json.dumps(dict(settings))
        return self._run(action.value, environment)

    def cancel(self) -> None:
        """Kill the commands that run, with all that they have started; who has called them is told that they failed.

        May be called from any thread, and where none runs.
        """
        self._shell.cancel()

    def end(self) -> None:
        """Kill what is running, and run nothing more."""
        self._shell.end()

    def allocation(self) -> Resources | None:
        """Ask what the system is given now; None where there is no command for that.

        Raises:
            MeasurementError: the command failed, took too long, or printed something else.

        """
        if self._settings.allocation is None:
            return None
        text = self._run("allocation", {"NEPHOSCOPE_ACTION": "allocation"})
        try:
            return Resources.model_validate_json(text)
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'text'}: {e['msg']}" for e in error.errors())
            raise MeasurementError(
                f"system.hooks.allocation has to print a JSON object of resources. {said}{shown(text)}"
            ) from None

    def _run(self, name: str, environment: Mapping[str, str]) -> str:
        """Run a command to its end; return what it printed."""
        command = self._settings.command(name)
        if command is None:
            raise MeasurementError(f"the study has no command for {name}: system.hooks.{name}")
        return self._shell.run(f"system.hooks.{name}", command, environment)
