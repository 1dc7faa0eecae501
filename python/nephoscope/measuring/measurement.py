"""A measurement from beginning to end: system, data, load, scores, report."""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nephoscope import _engine
from nephoscope.collectors import endpoint
from nephoscope.collectors.monitor import Monitor
from nephoscope.collectors.presence import Presence, company
from nephoscope.engine.loadrun import LoadRun
from nephoscope.engine.sessions import of_threads
from nephoscope.engine.watcher import Watcher, Watchers
from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.evaluators.base import Means
from nephoscope.files import check_named, write_named
from nephoscope.interrupts import Interrupted, abandon, shielded
from nephoscope.measuring.control import Control
from nephoscope.measuring.manifest import manifest_of
from nephoscope.measuring.preparing import (
    Listener,
    any_url,
    await_replicas,
    data_of,
    engine_description,
    prepare,
    prepare_tenant,
    prewarm,
    start,
)
from nephoscope.measuring.room import Rooms
from nephoscope.report.build import build_view
from nephoscope.report.page import render
from nephoscope.results.scores import scores_or_why, scores_so_far, scores_text
from nephoscope.settings.base import ROLES
from nephoscope.settings.units import describe_count
from nephoscope.store import FILES, RunWriter, StoredRun, new_run_directory
from nephoscope.store.layout import check_runs
from nephoscope.store.writer import seal, write_whole
from nephoscope.systems.base import provider_class
from nephoscope.systems.tenants import tenants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nephoscope.engine.data import WorkloadData
    from nephoscope.evaluators.base import Evaluator
    from nephoscope.scoring.definitions import ScoreName
    from nephoscope.scoring.formulas import Score
    from nephoscope.study.reading import Study
    from nephoscope.study.workload import Workload
    from nephoscope.systems.base import Provider, System

_log = logging.getLogger(__name__)

_CLOCK_STEP_S = 2.0
"""Larger than the steps of a clock that is slewed."""


class Audience(Watcher, Listener, Protocol):
    """Shows how a measurement goes."""

    def score(self, name: ScoreName, score: Score) -> None:
        """Show a score that has just been measured; more evaluators follow."""

    def end(self) -> None:
        """Stop showing: the load is over."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a measurement."""

    folder: Path
    status: str
    """``measured``, ``failed`` or ``interrupted``."""
    reason: str | None
    scores: Mapping[str, Any]
    page: Path | None = None
    """Where the report was written, if not in the run directory."""
    unwritten: str | None = None
    """Why the run could not be written in full: then there is no report, and the scores are only here."""

    @property
    def lacking(self) -> str | None:
        """Why a finished run has not measured everything; steps of a search are not missed."""
        number = sum(not shortfall["is_step"] for shortfall in self.scores.get("shortfalls", ()))
        if not number:
            return None
        return f"{describe_count(number, 'measured phase')} cannot count, as sessions were not connected"


def run_study(
    study: Study,
    runs: Path,
    audience: Audience,
    *,
    wrap: Callable[[Provider], Provider] | None = None,
    beside: Watcher | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run a study and write its run directory.

    ``beside`` watches the load as the audience does. ``wrap`` puts another provider around the study's own, to plant
    faults that it cannot. ``ready`` is called before each evaluator drives its load, and returns when it may.

    Raises ``InputError`` before anything is touched, ``MeasurementError`` where there is nothing to write yet.
    """
    if study.workload.scales is not None:
        raise InputError("a study of several scale factors is measured part by part: see series.parts")
    if study.factor:
        raise InputError(
            f"a study with [[factor]] is an experiment of many runs: {study.command('experiment')}"
        )
    prepare(study, any_url(study))
    check_runs(runs)
    for name, one in study.system.metrics.items():
        endpoint.check(name, one.url, one.keep)
    given = provider_class(study.system.provider)(study.system)
    with wrap(given) if wrap is not None else given as provider:
        audience.say(f"system: {study.system.provider}")
        system = start(provider)
        workload, evaluators = prepare(study, system.rw[0])
        rooms = Rooms(study, system, workload)
        crowded = rooms.check(evaluators, study.load.sessions)
        data = data_of(study, system, workload)
        handed_out = {name: prepare_tenant(study, data, name, audience) for name in data}
        await_replicas(study, system, workload)
        prewarm(study, system, workload)
        manifest = manifest_of(study, workload, system)
        with shielded():  # a run directory without a manifest could not be read
            folder = new_run_directory(runs, study.study.name)
            writer = RunWriter(folder, manifest, study.to_toml())
        watcher = audience if beside is None else Watchers(audience, beside)
        measurement = _Measurement(
            study,
            provider,
            system,
            workload,
            data,
            evaluators,
            rooms,
            crowded,
            writer,
            audience,
            watcher,
            ready,
        )
        return measurement.run(handed_out)


@dataclass
class _Measurement:
    """One run, from the first phase to the report."""

    study: Study
    provider: Provider
    system: System
    workload: Workload
    data: Mapping[str, WorkloadData]
    evaluators: Sequence[Evaluator]
    rooms: Rooms
    crowded: Sequence[str]
    """Steps that may not fit on the servers beside the sessions of others."""
    writer: RunWriter
    audience: Audience
    watcher: Watcher
    """Who is told of the load: the audience, and who is beside it."""
    ready: Callable[[], None]
    monitor: Monitor | None = None
    load: LoadRun | None = None
    control: Control | None = None
    presence: Presence = field(init=False)

    def __post_init__(self) -> None:
        self.presence = Presence.of(f"run {self.writer.folder.name}")

    def run(self, handed_out: Mapping[str, Mapping[str, int]]) -> Outcome:
        streams = max(evaluator.streams for evaluator in self.evaluators)
        description = engine_description(self.study, self.system, self.workload, handed_out, streams)
        load = self.load = LoadRun(description, self.writer, self.watcher, self._started)
        status, reason = "measured", None
        keeps_book = not self.study.workload.external
        try:
            if keeps_book:
                for data in self.data.values():
                    data.begin_run(self.writer.folder.name, self.presence)
            self._tell_of_others()
            for warning in self.crowded:
                self.audience.say(f"warning: {warning}")
                load.note("warning", message=warning)
            self.watcher.begin(self.writer.folder, sum(e.seconds() for e in self.evaluators))
            for index, evaluator in enumerate(self.evaluators):
                self._tell_scores(index - 1)
                self.ready()
                evaluator.drive(self._means(load))
        except Interrupted as error:
            asked = self.control.reason if self.control is not None else None
            status, reason = "interrupted", asked or str(error) or "interrupted"
        except NephoscopeError as error:
            status, reason = "failed", str(error)
        finally:
            self.audience.end()
            self._wind_up(load)
        if load.end is not None and load.end.get("failure") and status == "measured":
            status, reason = "failed", str(load.end["failure"])
        # Not interrupted: writing what was measured takes a moment.
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
        """Show a finished evaluator's scores before the next begins: nothing is measured meanwhile.

        The figures are computed again after the run. A failure here is reported then, and ends no run.
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
        """Return the system as it is now: an evaluator may have added or removed nodes."""
        with contextlib.suppress(MeasurementError):
            rw, ro = (self.provider.endpoints(role) for role in ROLES)
            return self.system.model_copy(update={"rw": rw, "ro": ro})
        return self.system

    def _means(self, load: LoadRun) -> Means:
        def ro_of(system: System) -> tuple[str, ...]:
            return tenants_of(self.study.tenants, system)[0].ro

        return Means(load, self.provider, self._system_now(), self.study, ro_of, self.rooms)

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
                    servers[f"server:{of}{role}{number if len(urls) > 1 else ''}"] = url
        load = self.load
        self.monitor = Monitor(
            self.writer,
            origin_ns,
            self.workload.description["dialect"],
            servers,
            self.presence,
            is_idle=lambda: load is not None and load.is_idle,
            processes=self.provider.processes,
            endpoints={name: (one.url, one.keep) for name, one in self.study.system.metrics.items()},
        )
        if load is not None:
            self.control = Control(load, self.workload, self.study.load.sessions)

    def _wind_up(self, load: LoadRun) -> None:
        """End the load and what is beside it; a second Ctrl-C hurries it."""
        try:
            if self.control is not None:
                self.control.close()
            with contextlib.suppress(MeasurementError):
                load.stop()
            if self.monitor is not None:
                self.monitor.stop()
        except Interrupted:
            _log.info("interrupted again: not waiting any more")
            abandon(load)

    def _tell_of_others(self) -> None:
        """Warn of others that work on the servers before the measurement; the monitor writes it into the run."""
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
        if tallies := (load.end or {}).get("tallies"):
            self.writer.event(load.elapsed, "tallies", tallies=tallies)
        self.writer.event(load.elapsed, "end", status=status, reason=reason)
        sessions = of_threads((phase.sessions for phase in load.phases.values()), self.study.load.threads)
        self.writer.manifest["load"] |= sessions
        # Without its end the number started is not known: an imbalance would be a false alarm.
        self.writer.finish(status, reason, load.totals if load.is_complete else None)

    def _outcome(self, status: str, reason: str | None, unwritten: str | None) -> Outcome:
        """Write scores and report; if writing fails, return the scores all the same."""
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
        # The tables come from the journals; the manifest has the run's end only now.
        seal(folder)
        manifest = dict(run.manifest)
        write_whole(folder / FILES.manifest, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        run = StoredRun(folder)
    scores = scores_or_why(run)
    # Earlier scores are better than none (no "cost"): their inputs may be gone.
    if "cost" in scores or run.scores is None:
        write_whole(folder / FILES.scores, scores_text(scores))
    write_whole(folder / FILES.report, page_of(run, scores))
    return scores


def report_run(folder: Path, page: Path | None) -> Outcome:
    """Score a stored run and write its report: into its folder, or to a ``page``; then the folder is only read.

    Raises ``InputError`` if the folder is no run, or the page cannot be written there.
    """
    # Opened by the given path first, for the message if it is no run.
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
