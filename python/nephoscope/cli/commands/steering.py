"""The command that steers a running run from another terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import JsonOption, RunArgument
from nephoscope.errors import InputError
from nephoscope.visible import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEYS = ("rate", "concurrency", "mix", "access")

ActionArgument = Annotated[
    Literal["status", "set", "pause", "resume", "stop"],
    typer.Argument(help="What the run is to do; status changes nothing."),
]


def ctl(
    run_directory: RunArgument,
    action: ActionArgument = "status",
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="With set: rate or concurrency, mix, access; such as rate=2000 mix=RO access=zipfian-0.8.",
        ),
    ] = None,
    *,
    over: Annotated[
        str | None,
        typer.Option("--over", metavar="TIME", help="With set: how long the change takes, such as 10s."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Steer a running load: its rate, concurrency, mix and access distribution; pause, resume, stop it.

    Each change is an event of the run, and a measured phase that was changed does not count.
    """
    from nephoscope.measuring.control import ask  # noqa: PLC0415
    from nephoscope.store import StoredRun  # noqa: PLC0415

    request = {"do": action, **_changes(changes or ()), **({} if over is None else {"over": over})}
    state = ask(StoredRun(run_directory).folder, request)
    if as_json:
        sys.stdout.write(json_text(dict(state)) + "\n")
    else:
        OUT.print(visible(_text(state)), soft_wrap=True)


def _changes(words: Sequence[str]) -> dict[str, Any]:
    """Read ``key=value``, whose values are TOML or else texts. Raises ``InputError``."""
    from nephoscope.study.overrides import given_value  # noqa: PLC0415

    changes: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in _KEYS or key in changes:
            raise InputError(f"{word}: expected KEY=VALUE, once for each of {', '.join(_KEYS)}")
        # A ratio such as 15:5:80 would be a time of day to TOML.
        changes[key] = value if key == "mix" and ":" in value else given_value(value)
    return changes


def _text(state: Mapping[str, Any]) -> str:
    """Tell the state of a run: ``20261125T…-mine: at 12.3 s in steady: rate 2,000, mix …``."""
    asked = state["asked"]
    parts = [f"{name} {asked[name]:,g}" for name in ("rate", "concurrency") if name in asked]
    if mix := asked.get("mix"):
        total = sum(mix.values()) or 1.0
        parts.append(
            "mix " + ", ".join(f"{name} {share / total:.0%}" for name, share in mix.items() if share)
        )
    if access := asked.get("access"):
        numbers = [f"{number:g}" for name, number in access.items() if name != "distribution"]
        parts.append("access " + "-".join([access["distribution"], *numbers]))
    if state["paused"]:
        parts.append("paused")
    if state["stopping"]:
        parts.append("stopping")
    phase = f" in {state['phase']}" if state["phase"] else ""
    return f"{state['run']}: at {state['elapsed_s']:,.1f} s{phase}: {'; '.join(parts)}"
