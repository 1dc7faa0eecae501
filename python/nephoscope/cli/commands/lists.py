"""Commands that tell what there is."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import JsonOption
from nephoscope.errors import InputError, MeasurementError
from nephoscope.visible import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def workloads(
    name: Annotated[
        str | None, typer.Argument(help="A workload's name or folder; all of them if left out.")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="The scale factor, for the numbers of rows.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="OPTION=VALUE", help="Set an option of the workload.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            help="The SQL dialect to show or try. Without it the first is shown, and all are tried."
        ),
    ] = None,
    *,
    trying: Annotated[
        bool, typer.Option("--try", help="Run each transaction for a moment, without a server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the workloads, or show one: tables, transactions, options, SQL; or try its transactions."""
    from nephoscope.cli.listing import describe_workload, list_workloads  # noqa: PLC0415
    from nephoscope.dialects import ANY_URL, url_without_database  # noqa: PLC0415
    from nephoscope.study.packaged import find_workload, packaged_workloads, source_of  # noqa: PLC0415
    from nephoscope.study.workload import Workload  # noqa: PLC0415

    if name is None and (settings or trying):
        raise InputError(f"{'--try' if trying else '--set'} needs the name of a workload")
    options = dict(map(_option, settings or ()))
    if name is not None and trying:
        return _try(name, options, scale, dialect, as_json=as_json)
    url = ANY_URL if dialect is None else url_without_database(dialect)
    names = [name] if name is not None else packaged_workloads()
    found = [Workload(find_workload(one), 1.0 if scale is None else scale, 7, options, url) for one in names]
    if as_json:
        sys.stdout.write(json_text([workload.description for workload in found]) + "\n")
    elif name is None:
        OUT.print(list_workloads(found))
    else:
        OUT.print(describe_workload(found[0], source_of(name)))
    return None


def _option(setting: str) -> tuple[str, Any]:
    """Read ``option=value``. Raises ``InputError``."""
    from nephoscope import _engine  # noqa: PLC0415
    from nephoscope.study.overrides import given_value  # noqa: PLC0415

    name, equals, value = setting.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set {_engine.redact(setting)}: expected option=value, such as products=1000")
    return name.strip(), given_value(value.strip())


def _try(
    name: str, options: Mapping[str, Any], scale: float | None, dialect: str | None, *, as_json: bool
) -> None:
    """Run each transaction of a workload for a moment. Raises ``MeasurementError`` where something is wrong."""
    from nephoscope.cli.listing import trials_text  # noqa: PLC0415
    from nephoscope.foreign.naming import named  # noqa: PLC0415
    from nephoscope.measuring.trying import Trying  # noqa: PLC0415
    from nephoscope.study.packaged import find_workload  # noqa: PLC0415

    found = named(name)
    external = found is not None and bool(found.meant().workload.get("external"))
    trying = Trying(find_workload(name), options, scale, external)
    trials = trying.on_all() if dialect is None else [trying.on(dialect)]
    if as_json:
        sys.stdout.write(json_text([asdict(trial) for trial in trials]) + "\n")
    else:
        OUT.print(trials_text(trials))
    if dialect is not None and trials[0].not_tried:
        raise MeasurementError(f"{name} cannot be tried on {dialect}: {trials[0].not_tried}")
    if not all(trial.holds for trial in trials):
        raise MeasurementError(f"{name} does not run as it should")


def systems() -> None:
    """List what can be measured: providers of systems, drivers by URL, evaluators."""
    from nephoscope.cli.listing import list_systems  # noqa: PLC0415

    OUT.print(list_systems())
