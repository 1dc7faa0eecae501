"""Commands that tell what there is."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.options import JsonOption
from nephoscope.visible import json_text


def workloads(
    name: Annotated[
        str | None, typer.Argument(help="A workload's name or folder; all of them if left out.")
    ] = None,
    scale: Annotated[float, typer.Option(help="The scale factor, for the numbers of rows.")] = 1.0,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the workloads, or show one: tables, transactions, options, SQL."""
    from nephoscope.cli.printing import describe_workload, list_workloads  # noqa: PLC0415
    from nephoscope.dialects import ANY_URL  # noqa: PLC0415
    from nephoscope.study.packaged import find_workload, packaged_workloads  # noqa: PLC0415
    from nephoscope.study.workload import Workload  # noqa: PLC0415

    names = [name] if name is not None else packaged_workloads()
    found = [Workload(find_workload(one), scale, 7, {}, ANY_URL) for one in names]
    if as_json:
        sys.stdout.write(json_text([workload.description for workload in found]) + "\n")
    elif name is None:
        OUT.print(list_workloads(found))
    else:
        OUT.print(describe_workload(found[0]))


def systems() -> None:
    """List what can be measured: providers of systems, drivers by URL, evaluators."""
    from nephoscope.cli.printing import list_systems  # noqa: PLC0415

    OUT.print(list_systems())
