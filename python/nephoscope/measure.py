"""A measurement from beginning to end: system, data, load, scores, report."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nephoscope import _engine, registry
from nephoscope.data import WorkloadData
from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.evaluators.base import Means
from nephoscope.files import check_named, write_named
from nephoscope.interrupts import Interrupted, abandon, shielded
from nephoscope.loadrun import LoadRun, Watcher
from nephoscope.manifest import manifest_of, reads_of
from nephoscope.masking import know_url
from nephoscope.monitor import Monitor
from nephoscope.presence import Presence, company
from nephoscope.price_book import load_price_book
from nephoscope.report import build_view, render
from nephoscope.scores import scores_or_why, scores_so_far, scores_text
from nephoscope.store import FILES, RunWriter, StoredRun, new_run_directory
from nephoscope.store.layout import check_runs
from nephoscope.store.writer import seal, write_whole
from nephoscope.systems.base import ROLES
from nephoscope.tenants import check_tenants, make_room, tenants_of
from nephoscope.variables import endpoint, redacted_url, with_secrets
from nephoscope.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nephoscope.evaluators.base import Evaluator
    from nephoscope.scoring import Score, ScoreName
    from nephoscope.study import Study
    from nephoscope.systems.base import Provider, System

_log = logging.getLogger(__name__)

_REPLICAS_S = 60.0
_CLOCK_STEP_S = 2.0
"""More than a clock is wrong by when it is kept right little by little."""


class Audience(Watcher, Protocol):
    """Whoever is told how a measurement goes."""

    def say(self, message: str) -> None:
        """Tell something that happened."""

    def loading(self, tables: Sequence[tuple[str, int, int]]) -> None:
        """Show how far loading is: tables with rows done and rows in all."""

    def begin(self, folder: Path, seconds: float) -> None:
        """Show that the load begins; it will take about so long."""

    def score(self, name: ScoreName, score: Score) -> None:
        """Show a score that has just been measured; more evaluators follow."""

    def end(self) -> None:
        """Stop showing: the load is over."""


@dataclass(frozen=True)
class Outcome:
    """What became of a measurement."""

    folder: Path
    status: str
    """``measured``, ``failed`` or ``interrupted``."""
    reason: str | None
    scores: Mapping[str, Any]
    page: Path | None = None
    """Where the report was written, if not in the run directory."""
    unwritten: str | None = None
    """Why something of the run could not be written: then there is no report, and the scores are told only here."""


def prepare(study: Study, system_url: str) -> tuple[Workload, list[Evaluator]]:
    """Check a study against its workload: everything that can be wrong before anything is touched.

    Raises ``InputError``.
    """
    for book in (study.cost.price_book, study.cost.starred):
        if book is not None:
            load_price_book(book)
    _on_connect(study)
    check_tenants(study.tenants, system_url)
    workload = Workload.of(study.workload, system_url)
    evaluators = [
        registry.evaluator(settings.evaluator)(settings, workload, index)
        for index, settings in enumerate(study.measure)
    ]
    for evaluator in evaluators:
        evaluator.check_tenants(study.tenants.number)
    return workload, evaluators


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
    return urls[0] if urls else "postgresql://reader@localhost/none"


@contextlib.contextmanager
def started(study: Study) -> Iterator[tuple[System, Workload]]:
    """Start a study's system, for as long as the context lasts, and read its workload.

    Raises ``InputError`` or ``MeasurementError``.
    """
    with registry.provider(study.system.provider)(study.system) as provider:
        system = _start(provider)
        yield system, Workload.of(study.workload, system.rw[0])


def _start(provider: Provider) -> System:
    """Start a system; from now on the passwords of its endpoints are in no text."""
    system = provider.start()
    for url in (*system.rw, *system.ro):
        know_url(url)
    return system


def data_of(study: Study, system: System, workload: Workload) -> dict[str, WorkloadData]:
    """Give each tenant's data, with room made for it. Raises ``MeasurementError``."""
    tenants = tenants_of(study.tenants, system)
    make_room(study.tenants, system, study.load.connect_timeout)
    return {tenant.name: _data(study, workload, tenant.rw[0]) for tenant in tenants}


def _data(study: Study, workload: Workload, url: str) -> WorkloadData:
    return WorkloadData(workload, url, study.load.connect_timeout, study.command("load"))


def run_study(
    study: Study, runs: Path, audience: Audience, *, wrap: Callable[[Provider], Provider] | None = None
) -> Outcome:
    """Run a study and write its run directory.

    ``wrap`` puts another provider around the study's own, to plant what that one cannot.

    Raises ``InputError`` before anything is touched, ``MeasurementError`` where there is nothing to write yet.
    """
    prepare(study, any_url(study))
    check_runs(runs)
    given = registry.provider(study.system.provider)(study.system)
    with wrap(given) if wrap is not None else given as provider:
        audience.say(f"system: {study.system.provider}")
        system = _start(provider)
        workload, evaluators = prepare(study, system.rw[0])
        data = data_of(study, system, workload)
        handed_out = {name: _prepare_tenant(study, data, name, audience) for name in data}
        _await_replicas(study, system, workload)
        manifest = manifest_of(study, workload, system)
        with shielded():  # a run directory without a manifest could not be read
            folder = new_run_directory(runs, study.study.name)
            writer = RunWriter(folder, manifest, study.to_toml())
        measurement = _Measurement(study, provider, system, workload, data, evaluators, writer, audience)
        return measurement.run(handed_out)


def _prepare_tenant(
    study: Study, data: Mapping[str, WorkloadData], name: str, audience: Audience
) -> Mapping[str, int]:
    """Prepare the data of a tenant; errors name it where there are several."""
    try:
        return _prepare_data(study, data[name], audience)
    except MeasurementError as error:
        raise MeasurementError(f"{name}: {error}" if len(data) > 1 else str(error)) from error


def _prepare_data(study: Study, data: WorkloadData, audience: Audience) -> Mapping[str, int]:
    """Load the data where that is asked for; give the keys that earlier runs have used up."""
    table = study.workload
    if table.external:
        return {}
    if table.load == "always" or (table.load == "missing" and not data.is_loaded()):
        outcome = data.load(
            force=table.load == "always", threads=table.load_threads, progress=audience.loading
        )
        audience.say(outcome.message)
    return data.require().handed_out


def _await_replicas(study: Study, system: System, workload: Workload) -> None:
    """Wait until the read-only endpoints that the load reads from have the data. Raises ``MeasurementError``."""
    if study.workload.external or reads_of(study, system) != "ro":
        return
    limit = time.monotonic() + _REPLICAS_S
    for tenant in tenants_of(study.tenants, system):
        for url in tenant.ro:
            data = _data(study, workload, url)
            while not _has_data(data):
                if time.monotonic() > limit:
                    where = redacted_url(url)
                    raise MeasurementError(f"{where} did not come to have the data within {_REPLICAS_S:g} s")
                time.sleep(0.05)


def _has_data(data: WorkloadData) -> bool:
    try:
        return data.is_loaded()
    except MeasurementError:
        # A database that was made a moment ago may not be there yet.
        return False


def engine_description(
    study: Study, system: System, workload: Workload, handed_out: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Describe a study's load for the engine; the phases come from the evaluators.

    ``handed_out`` are the keys that earlier runs of each tenant have used up.
    """
    load = study.load
    on_connect = _on_connect(study)
    if load.isolation:
        on_connect.insert(
            0, f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {load.isolation.upper()}"
        )
    return {
        "seed": study.study.seed,
        "threads": load.threads,
        "interval_ms": round(load.interval * 1000),
        "statement_mode": load.statement_mode,
        "pipeline": load.pipeline,
        "connect_timeout_ms": round(load.connect_timeout * 1000),
        "statement_timeout_ms": round(load.statement_timeout * 1000),
        "drain_timeout_ms": round(load.drain_timeout * 1000),
        "retry": {
            "attempts": load.retry.attempts,
            "backoff_ms": load.retry.backoff * 1000,
            "backoff_max_ms": load.retry.backoff_max * 1000,
        },
        "on_connect": on_connect,
        "balance": load.balance,
        "io": load.io,
        "tenants": [
            {
                "name": tenant.name,
                "rw": list(tenant.rw),
                "ro": list(tenant.ro),
                "reads": reads_of(study, tenant),
                "workload": workload.spec(handed_out.get(tenant.name)),
                "sessions": load.sessions,
                "backlog": load.backlog,
            }
            for tenant in tenants_of(study.tenants, system)
        ],
    }


def _on_connect(study: Study) -> list[str]:
    """Give what each session runs first, with its variables put in. Raises ``InputError``."""
    return [with_secrets(sql, "load.on_connect") for sql in study.load.on_connect]


@dataclass
class _Measurement:
    """One run, from the first phase to the report."""

    study: Study
    provider: Provider
    system: System
    workload: Workload
    data: Mapping[str, WorkloadData]
    evaluators: Sequence[Evaluator]
    writer: RunWriter
    audience: Audience
    monitor: Monitor | None = None
    load: LoadRun | None = None
    presence: Presence = field(init=False)

    def __post_init__(self) -> None:
        self.presence = Presence.of(f"run {self.writer.folder.name}")

    def run(self, handed_out: Mapping[str, Mapping[str, int]]) -> Outcome:
        description = engine_description(self.study, self.system, self.workload, handed_out)
        load = self.load = LoadRun(description, self.writer, self.audience, self._started)
        status, reason = "measured", None
        keeps_book = not self.study.workload.external
        try:
            if keeps_book:
                for data in self.data.values():
                    data.begin_run(self.writer.folder.name, self.presence)
            self._tell_of_others()
            self.audience.begin(self.writer.folder, sum(e.seconds() for e in self.evaluators))
            for index, evaluator in enumerate(self.evaluators):
                self._tell_scores(index - 1)
                evaluator.drive(Means(load, self.provider, self._system_now(), self.study))
        except Interrupted as error:
            status, reason = "interrupted", str(error) or "interrupted"
        except NephoscopeError as error:
            status, reason = "failed", str(error)
        finally:
            self.audience.end()
            self._wind_up(load)
        if load.end is not None and load.end.get("failure") and status == "measured":
            status, reason = "failed", str(load.end["failure"])
        # Who is impatient still gets what was measured: this takes a moment.
        with shielded():
            unwritten = None
            try:
                if keeps_book:
                    self._keep_book(load)
                self._finish(load, status, reason)
            except MeasurementError as error:
                unwritten = str(error)
            return self._outcome(status, reason, unwritten)

    def _tell_scores(self, index: int) -> None:
        """Tell the scores of an evaluator that has finished, before the next begins: nothing is measured meanwhile.

        The figures are computed again when the run has ended. What fails here is told then, and ends no run.
        """
        if index < 0:
            return
        try:
            found = scores_so_far(self.writer.folder, index)
        except Exception as error:  # noqa: BLE001 - whatever it is, the measurement matters more
            _log.info("no scores of measure.%d yet: %s", index, error)
            return
        for name, score in found.items():
            self.audience.score(name, score)

    def _system_now(self) -> System:
        """Tell the system as it is now: an evaluator may have had nodes come or go."""
        with contextlib.suppress(MeasurementError):
            rw, ro = (self.provider.endpoints(role) for role in ROLES)
            return self.system.model_copy(update={"rw": rw, "ro": ro})
        return self.system

    def _started(self, origin_ns: int) -> None:
        from datetime import timedelta  # noqa: PLC0415 - only here

        offset = timedelta(microseconds=(_engine.monotonic_ns() - origin_ns) / 1000)
        self.writer.write_manifest(clock={"origin": (self.writer.clock.now() - offset).isoformat()})
        servers = {}
        tenants = tenants_of(self.study.tenants, self.system)
        for tenant in tenants if self.study.tenants.share == "server" else tenants[:1]:
            of = f"{tenant.name}:" if tenant is not tenants[0] else ""
            for role, urls in (("rw", tenant.rw), ("ro", tenant.ro)):
                for number, url in enumerate(urls, start=1):
                    if url.startswith("postgres"):
                        servers[f"server:{of}{role}{number if len(urls) > 1 else ''}"] = url
        load = self.load
        self.monitor = Monitor(
            self.writer, origin_ns, servers, self.presence, lambda: load is not None and load.is_idle
        )

    def _wind_up(self, load: LoadRun) -> None:
        """End the load and the monitor; a second Ctrl-C hurries it."""
        try:
            with contextlib.suppress(MeasurementError):
                load.stop()
            if self.monitor is not None:
                self.monitor.stop()
        except Interrupted:
            _log.info("interrupted again: not waiting any more")
            abandon(load)

    def _tell_of_others(self) -> None:
        """Say what else is at work on the servers before anything is measured; the monitor writes it into the run."""
        places = list(self.data.values())
        servers = places if self.study.tenants.share == "server" else places[:1]
        if others := set[str]().union(*(data.others(self.presence) for data in servers)):
            self.audience.say(f"warning: {company(others)}")

    def _keep_book(self, load: LoadRun) -> None:
        end = load.end or {}
        if load.has_begun and not load.is_complete:
            return  # Without the engine's end it is not known what was committed.
        for tenant, data in self.data.items():
            try:
                if not load.has_begun or not end["started"]:
                    data.forget_run(self.presence)
                    continue
                data.end_run(
                    self.presence,
                    end.get("tallies", {}).get(tenant, {}),
                    end.get("handed_out", {}).get(tenant, {}),
                )
            except MeasurementError as error:
                self.writer.event(
                    load.elapsed, "warning", message=f"what the run has added up was not kept: {error}"
                )

    def _finish(self, load: LoadRun, status: str, reason: str | None) -> None:
        if fault := load.identity_fault():
            self.writer.event(load.elapsed, "warning", message=fault)
        step = self.writer.clock.step()
        if abs(step) > _CLOCK_STEP_S:
            message = (
                f"the machine's clock was set by {step:+,.0f} s meanwhile: nothing is measured by it,"
                " and the manifest's times are those of before"
            )
            self.writer.event(load.elapsed, "warning", message=message)
        self.writer.event(load.elapsed, "end", status=status, reason=reason)
        # Without its end it is not known what was started, and accounts that do not balance would be a false alarm.
        self.writer.finish(status, reason, load.totals if load.is_complete else None)

    def _outcome(self, status: str, reason: str | None, unwritten: str | None) -> Outcome:
        """Write scores and report; where nothing more can be written, what was measured is told all the same."""
        folder = self.writer.folder
        if unwritten is None:
            try:
                return Outcome(folder, status, reason, write_results(folder))
            except MeasurementError as error:
                unwritten = str(error)
        self.writer.close()
        try:
            scores = scores_or_why(StoredRun(folder))
        except InputError:  # the run directory is gone
            raise MeasurementError(unwritten) from None
        return Outcome(folder, status, reason, scores, unwritten=unwritten)


def write_results(folder: Path) -> Mapping[str, Any]:
    """Compute a stored run's scores and write its report, anew if need be; gives the scores.

    Raises ``InputError`` if the folder is no run, ``MeasurementError`` if it cannot be written.
    """
    run = StoredRun(folder)
    if run.manifest["status"] == "killed":
        # Its tables come from the journals; what the manifest says of its end is known only now.
        seal(folder)
        manifest = dict(run.manifest)
        write_whole(folder / FILES.manifest, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        run = StoredRun(folder)
    scores = scores_or_why(run)
    # Scores of before are better than none, which have no "cost": what they were made with may be gone.
    if "cost" in scores or run.scores is None:
        write_whole(folder / FILES.scores, scores_text(scores))
    write_whole(folder / FILES.report, page_of(run, scores))
    return scores


def report_run(folder: Path, page: Path | None) -> Outcome:
    """Score a stored run and write its report: into its folder, or to a ``page``; then the folder is only read.

    Raises ``InputError`` if the folder is no run, or the page cannot be written there.
    """
    # First as it was given, for the message where it is none.
    run = StoredRun(folder)
    told = (run.folder, run.manifest["status"], run.manifest.get("reason"))
    if page is None:
        try:
            return Outcome(*told, write_results(run.folder))
        except MeasurementError as error:
            return Outcome(*told, scores_or_why(run), unwritten=str(error))
    check_named(page)
    scores = scores_or_why(run)
    write_named(page, page_of(run, scores))
    return Outcome(*told, scores, page=page)


def page_of(run: StoredRun, scores: Mapping[str, Any]) -> str:
    """Render the report of a stored run with these scores; nothing is written. Raises ``InputError``."""
    return render(build_view(run.scored(json.loads(scores_text(dict(scores))))))
