"""The steps before a measurement: check the study, start its system, load its data, describe its load."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from nephoscope.dialects import DIALECTS
from nephoscope.engine.keyed import data_for
from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.base import evaluator_class
from nephoscope.masking import know_url
from nephoscope.measuring.manifest import reads_of
from nephoscope.scoring.prices import bill, load_price_book, load_unit_costs
from nephoscope.settings.variables import endpoint, redacted_url, with_secrets
from nephoscope.store.protocol import stream_name
from nephoscope.study.services import service
from nephoscope.study.workload import Workload
from nephoscope.systems.base import provider_class
from nephoscope.systems.tenants import check_tenants, make_room, tenants_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.engine.data import WorkloadData
    from nephoscope.evaluators.base import Evaluator
    from nephoscope.study.reading import LoadTable, Study
    from nephoscope.systems.base import Provider, System
    from nephoscope.systems.tenants import Tenant

_REPLICAS_S = 60.0


class Listener(Protocol):
    """Shows how loading goes."""

    def say(self, message: str) -> None:
        """Tell something that happened."""

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Show how far loading is: tables with rows done and rows in all."""


def prepare(study: Study, system_url: str) -> tuple[Workload, list[Evaluator]]:
    """Check a study against its workload before anything is touched.

    Raises ``InputError``.
    """
    _prices(study)
    _on_connect(study)
    _check_processors(study.load.cpus)
    check_tenants(study.tenants, system_url)
    workload = Workload.of(study.workload, system_url)
    _check_service(study, workload)
    _check_isolation(study, workload)
    if study.load.consistency is not None:
        workload.check_consistency([study.load.consistency], "load.consistency")
    if study.workload.prewarm and not workload.description["schema"]["prewarm"]:
        raise InputError(f"workload.prewarm: the schema of {workload.name} has no section prewarm")
    evaluators = [
        evaluator_class(settings.evaluator)(settings, workload, index)
        for index, settings in enumerate(study.measure)
    ]
    for evaluator in evaluators:
        evaluator.check_tenants(study.tenants.number)
    return workload, evaluators


def _check_isolation(study: Study, workload: Workload) -> None:
    """Check that the system has the isolation level. Raises ``InputError``."""
    name, level = workload.description["dialect"], study.load.isolation
    levels = workload.description["capabilities"]["isolation"]
    if level is not None and level not in levels:
        allowed = f"{'is' if len(levels) == 1 else 'are'} {', '.join(map(repr, levels))}"
        raise InputError(f"load.isolation: {name} has no {level!r}; allowed {allowed}")


def _check_service(study: Study, workload: Workload) -> None:
    """Check that the system's driver is the service's. Raises ``InputError``."""
    name = workload.description["dialect"]
    if study.load.service is None or name not in DIALECTS:
        return
    schemes, wanted = DIALECTS[name].schemes, service(study.load.service).scheme
    if wanted not in schemes:
        own = next(iter(schemes), name)
        raise InputError(
            f"load.service: {study.load.service} is reached by {wanted}://, and this system by {own}://"
        )


def _check_processors(cpus: Sequence[int]) -> None:
    """Check that this process may use the processors. Raises ``InputError``."""
    allowed = os.sched_getaffinity(0)
    for cpu in cpus:
        if cpu not in allowed:
            known = ", ".join(map(str, sorted(allowed)))
            raise InputError(f"load.cpus: this process may not use processor {cpu}; allowed are {known}")


def _prices(study: Study) -> None:
    """Check the price books, and that what the study declares can be billed. Raises ``InputError``."""
    load_unit_costs(study.cost.price_book)
    if study.cost.starred is None:
        return
    starred = load_price_book(study.cost.starred).used(study.cost.usage)
    if study.system.resources is not None:
        bill(study.system.resources, starred, duration_s=1)


def any_url(study: Study) -> str:
    """Return a URL of the study's system before it is started: only its driver matters.

    Raises ``InputError``.
    """
    of_role = {role: getattr(study.system, role, ()) for role in ("rw", "ro")}
    urls = [
        endpoint(url, f"system.{role}")
        for role, given in of_role.items()
        for url in ([given] if isinstance(given, str) else given)
    ]
    return urls[0] if urls else provider_class(study.system.provider).dialect_url


@contextlib.contextmanager
def started(study: Study) -> Iterator[tuple[System, Workload]]:
    """Start a study's system, for as long as the context lasts, and read its workload.

    Raises ``InputError`` or ``MeasurementError``.
    """
    with provider_class(study.system.provider)(study.system) as provider:
        system = start(provider)
        yield system, Workload.of(study.workload, system.rw[0])


def start(provider: Provider) -> System:
    """Start a system, and mask the passwords of its endpoints from now on."""
    system = provider.start()
    for url in (*system.rw, *system.ro):
        know_url(url)
    return system


def data_of(study: Study, system: System, workload: Workload) -> dict[str, WorkloadData]:
    """Give each tenant's data, with room made for it. Raises ``MeasurementError``."""
    tenants = tenants_of(study.tenants, system)
    make_room(study.tenants, system, study.load.connect_timeout)
    return {tenant.name: _data(study, system, workload, tenant.rw[0]) for tenant in tenants}


def _data(study: Study, system: System, workload: Workload, url: str) -> WorkloadData:
    command, wait_s = study.command("load"), study.load.connect_timeout
    return data_for(workload, url, wait_s, command, replaceable=system.is_cached)


def prepare_tenant(
    study: Study, data: Mapping[str, WorkloadData], name: str, audience: Listener
) -> Mapping[str, int]:
    """Prepare the data of a tenant; errors name it where there are several."""
    try:
        return _prepare_data(study, data[name], audience)
    except MeasurementError as error:
        raise MeasurementError(f"{name}: {error}" if len(data) > 1 else str(error)) from error


def _prepare_data(study: Study, data: WorkloadData, audience: Listener) -> Mapping[str, int]:
    """Load the data if the study says so; return the keys that earlier runs have used up."""
    table = study.workload
    if table.external:
        return {}
    if table.load == "always" or (table.load == "missing" and not data.is_loaded()):
        outcome = data.load(
            force=table.load == "always", threads=table.load_threads, progress=audience.loading
        )
        audience.say(outcome.message)
    return data.require().handed_out


def await_replicas(study: Study, system: System, workload: Workload) -> None:
    """Wait until the load's read-only endpoints have the data. Raises ``MeasurementError``."""
    if study.workload.external or reads_of(study, system) == "rw":
        return
    limit = time.monotonic() + _REPLICAS_S
    for tenant in tenants_of(study.tenants, system):
        for url in tenant.ro:
            data = _data(study, system, workload, url)
            while not _has_data(data):
                if time.monotonic() > limit:
                    where = redacted_url(url)
                    raise MeasurementError(f"{where} did not come to have the data within {_REPLICAS_S:g} s")
                time.sleep(0.05)


def prewarm(study: Study, system: System, workload: Workload) -> None:
    """Let each endpoint read the tables whole, where the study wants that. Raises ``MeasurementError``."""
    for tenant in tenants_of(study.tenants, system) if study.workload.prewarm else ():
        for url in dict.fromkeys((*tenant.rw, *tenant.ro)):
            _data(study, system, workload, url).prewarm()


def _has_data(data: WorkloadData) -> bool:
    try:
        return data.is_loaded()
    except MeasurementError:
        # A new database may not be on the replica yet.
        return False


def engine_description(
    study: Study,
    system: System,
    workload: Workload,
    handed_out: Mapping[str, Mapping[str, int]],
    streams: int = 1,
) -> dict[str, Any]:
    """Describe a study's load for the engine; the phases come from the evaluators.

    ``handed_out`` are the keys that earlier runs of each tenant have used up, and ``streams`` is the most loads that
    the first tenant has at a time.
    """
    load = study.load
    on_connect = _on_connect(study)
    if load.isolation:
        dialect = DIALECTS.get(workload.description["dialect"])
        if dialect is not None and dialect.isolation is not None:
            on_connect.insert(0, dialect.isolation.format(level=load.isolation.upper()))
    tenants: list[dict[str, Any]] = [
        tenant_description(load, tenant, reads_of(study, tenant), workload.spec(handed_out.get(tenant.name)))
        for tenant in tenants_of(study.tenants, system)
    ]
    first = tenants[0]
    tenants += [
        {**first, "name": stream_name(first["name"], number), "stream_of": first["name"]}
        for number in range(2, streams + 1)
    ]
    return {**load_description(load, study.study.seed, on_connect), "tenants": tenants}


def tenant_description(
    load: LoadTable, tenant: Tenant, reads: str, workload: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe a tenant for the engine: its endpoints and what runs there."""
    return {
        "name": tenant.name,
        "rw": list(tenant.rw),
        "ro": list(tenant.ro),
        "reads": reads,
        "writer_weight": load.writer_weight,
        "workload": workload,
        "sessions": load.sessions,
        "backlog": load.backlog,
    }


def load_description(load: LoadTable, seed: int, on_connect: list[str]) -> dict[str, Any]:
    """Describe for the engine how transactions are run; who runs them is not told."""
    return {
        "seed": seed,
        "threads": load.threads,
        "cpus": load.cpus,
        "interval_ms": round(load.interval * 1000),
        "statement_mode": load.statement_mode,
        "pipeline": load.pipeline,
        "connect_timeout_ms": round(load.connect_timeout * 1000),
        "statement_timeout_ms": round(load.statement_timeout * 1000),
        "drain_timeout_ms": round(load.drain_timeout * 1000),
        "retry": load.retry.to_engine(),
        "on_connect": on_connect,
        "consistency": load.consistency,
        "balance": load.balance,
        "io": load.io,
    }


def _on_connect(study: Study) -> list[str]:
    """Return the sessions' first statements, with variables replaced. Raises ``InputError``."""
    return [with_secrets(sql, "load.on_connect") for sql in study.load.on_connect]
