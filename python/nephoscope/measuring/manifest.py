"""The manifest of a run: its host, system, workload and settings. Never a password."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import __version__, _engine
from nephoscope.scoring.prices import load_price_book
from nephoscope.systems.machine.capacity import this_machine
from nephoscope.systems.tenants import tenants_of

if TYPE_CHECKING:
    from nephoscope.study.reading import Study
    from nephoscope.study.workload import Workload
    from nephoscope.systems.base import System
    from nephoscope.systems.tenants import Tenant


def manifest_of(study: Study, workload: Workload, system: System) -> dict[str, Any]:
    """Gather what is known before the load begins."""
    load = study.load
    io, io_reason = _engine.choose_io(load.io)
    return {
        "nephoscope": __version__,
        "study": study.study.name,
        "seed": study.study.seed,
        "clock": {"origin": datetime.now(UTC).isoformat()},
        "host": host_facts(),
        "workload": {
            "name": workload.name,
            "scale": workload.scale,
            "data_seed": workload.data_seed,
            "options": {option["name"]: option["value"] for option in workload.description["options"]},
            "files": workload.hashes(),
        },
        "load": {
            "threads": load.threads,
            "cpus": load.cpus,
            "interval_s": load.interval,
            "statement_mode": load.statement_mode,
            "pipeline": load.pipeline,
            "io": io,
            "io_reason": io_reason,
            "balance": load.balance,
            "reads": reads_of(study, system),
            "writer_weight": load.writer_weight,
            "isolation": load.isolation or "the server's default",
            "consistency": load.consistency or "the system's default",
        },
        "system": {
            "provider": study.system.provider,
            "endpoints": {
                "rw": [_engine.redact(url) for url in system.rw],
                "ro": [_engine.redact(url) for url in system.ro],
            },
            "resources": system.resources.model_dump() if system.resources else None,
            "facts": {**system.facts, **server_facts(system, load.connect_timeout)},
            "tenants": {
                "share": study.tenants.share,
                "each": [tenant.facts() for tenant in tenants_of(study.tenants, system)],
            },
        },
        "inputs": inputs_of(study, workload),
    }


def inputs_of(study: Study, workload: Workload) -> dict[str, Any]:
    """Return the inputs that a run keeps a copy of: reading it needs no other files, and trusts none.

    Raises ``InputError`` for a price book that cannot be read.
    """
    books = {"price_book": study.cost.price_book, "starred": study.cost.starred}
    prices = {
        name: load_price_book(book).used(study.cost.usage).model_dump(mode="json")
        if book is not None
        else None
        for name, book in books.items()
    }
    return {"workload": workload.kept(), "prices": prices}


def reads_of(study: Study, system: System | Tenant) -> str:
    """Say where read-only transactions run."""
    if study.load.reads != "auto":
        return study.load.reads
    return "ro" if system.ro else "rw"


def server_facts(system: System, connect_timeout: float) -> dict[str, str]:
    """Ask the server for its version and settings. Raises ``MeasurementError`` if it cannot be reached."""
    admin = _engine.Admin(system.rw[0], connect_timeout_s=connect_timeout)
    try:
        return dict(admin.server_facts())
    finally:
        admin.close()


def host_facts() -> dict[str, Any]:
    """Describe the machine that the load comes from."""
    machine = this_machine()
    return {
        "name": platform.node(),
        "os": _os_name(),
        "kernel": platform.release(),
        "cpu": _cpu_name(),
        "cores": machine.cores,
        "memory_gb": round(machine.memory_gb, 2),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
