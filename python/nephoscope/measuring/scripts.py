"""Commands of another tool's script, beside its load: sysbench's prepare and cleanup."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.measuring.preparing import any_url, prepare, started
from nephoscope.study.borrowed import command_of
from nephoscope.systems.tenants import make_room, tenants_of

if TYPE_CHECKING:
    from nephoscope.measuring.preparing import Listener
    from nephoscope.study.reading import Study


def run_command(study: Study, audience: Listener) -> None:
    """Run a command of a script for each tenant. Raises ``InputError`` or ``MeasurementError``."""
    prepare(study, any_url(study))
    options = study.workload.options
    threads = int(options.get("threads", 1))
    with started(study) as (system, workload):
        make_room(study.tenants, system, study.load.connect_timeout)
        for tenant in tenants_of(study.tenants, system):
            _, statements = _engine.load(json.dumps(workload.spec()), tenant.rw[0], threads, audience.loading)
            audience.say(f"{workload.name} {command_of(study)}: {statements} statements")
