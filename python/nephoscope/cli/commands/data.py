"""Commands about the data of a workload."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nephoscope.cli.consoles import OUT
from nephoscope.cli.live import make_view
from nephoscope.cli.options import (
    JsonOption,
    PgbenchOption,
    SetOption,
    SqlOption,
    StudyArgument,
    UrlOption,
    YcsbOption,
    given_by,
    study_of,
)
from nephoscope.errors import MeasurementError, UndecidedError
from nephoscope.settings.units import describe_bytes
from nephoscope.visible import json_text


def load(
    context: typer.Context,
    study: StudyArgument = None,
    settings: SetOption = None,
    *,
    url: UrlOption = None,
    pgbench: PgbenchOption = None,
    sql: SqlOption = None,
    ycsb: YcsbOption = None,
    force: Annotated[bool, typer.Option("--force", help="Load anew what is there already.")] = False,
    threads: Annotated[int, typer.Option(help="Threads that load; 0 is one per core.")] = 0,
) -> None:
    """Load the data that a study's workload runs on."""
    from nephoscope.measuring.preparing import any_url, data_of, prepare, started  # noqa: PLC0415

    given = given_by(context, study, url, pgbench=pgbench, sql=sql, ycsb=ycsb)
    chosen = study_of(study, settings, given=given)
    prepare(chosen, any_url(chosen))
    view = make_view(as_json=False)
    with started(chosen) as (system, workload):
        try:
            outcomes = {
                tenant: data.load(force=force, threads=threads, progress=view.loading)
                for tenant, data in data_of(chosen, system, workload).items()
            }
        finally:
            view.end()
    for tenant, outcome in outcomes.items():
        OUT.print(f"{tenant}: {outcome.message}" if len(outcomes) > 1 else outcome.message)


def check(
    context: typer.Context,
    study: StudyArgument = None,
    settings: SetOption = None,
    *,
    url: UrlOption = None,
    pgbench: PgbenchOption = None,
    sql: SqlOption = None,
    ycsb: YcsbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the data: that it is there, and that the workload's invariants hold."""
    from nephoscope.cli.listing import check_table  # noqa: PLC0415
    from nephoscope.measuring.preparing import any_url, data_of, prepare, started  # noqa: PLC0415

    given = given_by(context, study, url, pgbench=pgbench, sql=sql, ycsb=ycsb)
    chosen = study_of(study, settings, given=given)
    prepare(chosen, any_url(chosen))
    with started(chosen) as (system, workload):
        results = {
            tenant: data.check(external=chosen.workload.external)
            for tenant, data in data_of(chosen, system, workload).items()
        }
    if as_json:
        facts = [
            {**vars(result), "tenant": tenant} if len(results) > 1 else vars(result)
            for tenant, found in results.items()
            for result in found
        ]
        sys.stdout.write(json_text(facts) + "\n")
    else:
        for tenant, found in results.items():
            if len(results) > 1:
                OUT.print(f"{tenant}:")
            OUT.print(check_table(workload.name, found))
    verdicts = [result.verdict for found in results.values() for result in found]
    if "broken" in verdicts:
        raise MeasurementError("the data breaks an invariant")
    if "unknown" in verdicts:
        raise UndecidedError("whether the data keeps every invariant cannot be told")


def clean(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove what embedded servers keep in the cache: their data, and copies of their programs."""
    from nephoscope.systems.cache import cached, remove  # noqa: PLC0415
    from nephoscope.systems.machine.folders import cache_folder  # noqa: PLC0415

    removed, left = 0, []
    for one in cached():
        try:
            remove(one, only_look=dry_run)
        except MeasurementError as error:
            left.append(str(error))
            continue
        removed += one.bytes
        OUT.print(
            f"{'would remove' if dry_run else 'removed'}: {one.path} ({one.what}, {describe_bytes(one.bytes)})"
        )
    if not removed and not left:
        OUT.print(f"nothing to remove in {cache_folder()}")
    if left:
        raise MeasurementError("\n".join(left))
