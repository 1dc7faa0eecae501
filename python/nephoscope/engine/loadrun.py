"""A running load: phases are requested; records are read, written and shown."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.collectors.client import client_metrics
from nephoscope.engine.asked import AskedLoads, change_of
from nephoscope.engine.histories import history_of
from nephoscope.engine.sessions import PhaseRecord
from nephoscope.errors import MeasurementError
from nephoscope.interrupts import shielded
from nephoscope.masking import masked
from nephoscope.settings.courses import at_once, described
from nephoscope.settings.loads import Load, lets_go, pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nephoscope.engine.watcher import Watcher
    from nephoscope.settings.retries import RetrySetting
    from nephoscope.store import RunWriter

_PUMP_S = 0.1
_AHEAD_S = 0.1
_SETTLE_S = 5.0
"""The timeout for the last interval of a phase, in s: the engine delivers within milliseconds."""
_LATE_S = 30.0
"""How late the engine's records may come on a busy machine, in s."""
_END_S = 60.0
"""How much longer than its transactions a run's end may take, in s: an endless transaction is found after 10 s of
processor time, or 15 s, and on a busy machine processor time passes slowly."""


class LoadRun:
    """One run of the engine, for all the evaluators of a study: one clock, one set of sessions."""

    def __init__(
        self,
        description: Mapping[str, Any],
        writer: RunWriter,
        watcher: Watcher,
        started: Callable[[int], None],
    ) -> None:
        """Take all that the engine needs but the phases; the load starts with the first phase.

        ``started`` is called with the monotonic clock's nanoseconds when the load has begun.
        """
        self._description = {**description, "history": history_of(writer.folder)}
        self.writer = writer
        """Where the run is written; for whoever measures beside the load."""
        self._watcher = watcher
        self._started = started
        self._run: _engine.Run | None = None
        self._cursor = 0.0
        """When the next phase begins, in seconds since the start of the load."""
        self.phases: dict[int, PhaseRecord] = {}
        self._asked = 0
        self._think: str | None = None
        self._idle_phases: dict[int, bool] = {}
        self._asked_loads = AskedLoads(self.tenants, self._streams)
        self.phase_name: str | None = None
        """The phase that is going on, once its beginning was told."""
        self.is_idle = False
        """Whether the present phase has no load and no connections: the monitor should close its own."""
        self.reached_s: float | None = None
        """When an added endpoint had its first commit, in seconds since the start of the load."""
        self._told_s = 0.0
        """The end of the last interval that was handled, as ``reached_s``."""
        self._all_moved_s = 0.0
        """When the last interval began in which every session was at a present endpoint, as ``reached_s``."""
        counts = ("started", "committed", "aborted", "failed", "in_flight", "dropped", "unstarted")
        self._totals = dict.fromkeys(counts, 0)
        self.end: dict[str, Any] | None = None
        self.listening: list[Callable[[Mapping[str, Any]], None]] = []
        """Called with each interval's record, for an evaluator that decides by it what comes next."""

    # --- phases ---------------------------------------------------------------------------------------------

    @property
    def tenants(self) -> tuple[str, ...]:
        """The names of the tenants; a system without tenants has one."""
        tenants = self._description["tenants"]
        return tuple(str(tenant["name"]) for tenant in tenants if not tenant.get("stream_of"))

    @property
    def _streams(self) -> tuple[str, ...]:
        """The names of the first tenant's loads: its own, and those beside it."""
        streams = [str(one["name"]) for one in self._description["tenants"] if one.get("stream_of")]
        return (self.tenants[0], *streams)

    def phase(
        self,
        name: str,
        kind: str,
        seconds: float,
        load: Load | Sequence[Load] | Mapping[str, Load],
        labels: Mapping[str, Any] | None = None,
        *,
        history: bool = False,
        retry: RetrySetting | None = None,
    ) -> int:
        """Append a phase to those requested, and return its number. Does not wait.

        ``load`` is that of the first tenant, and the others rest; or several that it has at a time, as many as the
        evaluator's ``streams`` at the most; or a load by tenant, with ``"*"`` for all of them, over which a tenant's
        own lies: who is not named keeps his load. With ``history`` a history of its own begins: what transactions
        observe from then on. ``retry`` holds from its beginning on, and stays as it was if left out. Raises
        ``ValueError`` where a transition has no way.
        """
        self._think = pauses(load, self.tenants[0]) or self._think
        paced = {"think": self._think} if self._think == "workload" else {}
        loads = self._loads(load)
        phase = {
            "name": name,
            "kind": kind,
            # The planned length, by which a phase that was cut short is recognised.
            "labels": {**(labels or {}), **paced, "planned_s": seconds},
            "loads": {tenant: at_once(one).to_engine(seconds) for tenant, one in loads.items()},
            "seconds": None,
            "history": history,
            "retry": retry.to_engine() if retry is not None else None,
        }
        number = self._asked
        with shielded():
            if self._run is None:
                self._run = _engine.Run(json.dumps({**self._description, "phases": [phase]}))
                self._started(self._run.origin_ns)
            else:
                self._cursor = self._run.change(json.dumps(phase), is_phase=True, at_s=self._cursor)
            self._idle_phases[number] = lets_go(load)
            for at_s, step in self._asked_loads.phase(number, loads, self._cursor, seconds):
                self._run.change(step, is_phase=False, at_s=at_s)
            self._asked += 1
            self._cursor += seconds
        return number

    def _loads(self, load: Load | Sequence[Load] | Mapping[str, Load]) -> dict[str, Load]:
        """Return what a phase asks of each tenant and stream."""
        loads = dict.fromkeys(self._streams[1:], Load(concurrency=0.0, release=True))
        if isinstance(load, Load):
            load = [load]
        if not isinstance(load, Mapping):
            loads |= dict.fromkeys(self.tenants[1:], Load(concurrency=0.0))
            load = dict(zip(self._streams, load, strict=False))
        return {**loads, **load}

    def steer(self, load: Load) -> float:
        """Change the first tenant's load now, within the present phase; what was asked for already comes after it.

        Gives when it takes effect, in seconds since the start of the load, as the event ``steered``. For any thread.
        Raises ``MeasurementError`` where there is no load, ``ValueError`` where a transition has no way.
        """
        at_s = self._asked_loads.steer(self._engine_run, load)
        self.writer.event(at_s, "steered", tenant=self.tenants[0], load=described(load, None))
        return at_s

    def asked(self, since_s: float = 0.0) -> Load:
        """Return what is asked of the first tenant at present, or at a later time."""
        return self._asked_loads.at(max(self.elapsed, since_s))

    @property
    def _engine_run(self) -> _engine.Run:
        """The engine's run. Raises ``MeasurementError`` before its start."""
        if self._run is None:
            raise MeasurementError("the load has not begun")
        return self._run

    def set(self, **changes: Any) -> float:  # noqa: ANN401 - the fields of Load
        """Change the load now, within the present phase: ``run.set(rate=2000.0, mix={"order_status": 1.0})``.

        It is the load of the first tenant. The keys are the fields of ``Load``; what is not named stays as it is, and
        sessions that are still needed keep their connections. Changes take effect in their order: where later phases
        were asked for already, this one comes after them. For any thread. Gives the time, as ``steer``.
        """
        return self._engine_run.change(change_of({self.tenants[0]: Load(**changes)}), is_phase=False)

    def wait(self) -> None:
        """Wait until every requested phase is over and its last interval is read.

        The load goes on in a phase that does not count, until another is requested.
        """
        if self._run is None:
            return
        end = self._cursor
        last = self._asked - 1
        # Requested late, so that ``set`` can change the load meanwhile: changes take effect in order.
        self.pump_until(end - _AHEAD_S)
        nothing: dict[str, Any] = {}
        settle = {"name": "settle", "kind": "pause", "labels": nothing, "loads": nothing, "seconds": None}
        if self.end is None:
            self._cursor = self._run.change(json.dumps(settle), is_phase=True, at_s=end)
            self._asked += 1
        self.pump_until(end)
        limit = time.monotonic() + _SETTLE_S
        while self.end is None and self._last_end(last) < self._cursor - 1e-6 and time.monotonic() < limit:
            self._pump(0.02)
        self._cursor = 0.0
        if self.end is not None and self.end.get("failure"):
            raise MeasurementError(str(self.end["failure"]))

    def await_told(self, happened: Callable[[], bool], limit_s: float) -> bool:
        """Wait for something that the engine's records tell; returns whether it did within so many seconds.

        It is the records' own time that counts: they may come late here where the machine is busy.
        """
        until = self.elapsed + limit_s
        while not happened() and self.end is None and self._told_s < until and self.elapsed < until + _LATE_S:
            self._pump(_PUMP_S)
        return happened()

    def follow(self, since: float, limit_s: float) -> bool:
        """Wait until every session has followed a change of the endpoints; returns whether all have.

        ``since`` is when the change takes effect, in seconds since the start of the load. Until then a session may be
        in a transaction at an endpoint that was removed.
        """
        return self.await_told(lambda: self._all_moved_s >= since, limit_s) or self.end is not None

    @property
    def planned_end(self) -> float:
        """When the requested phases are over, in seconds since the start of the load."""
        return self._cursor

    def pump_until(self, moment: float) -> None:
        """Handle records until a time since the start of the load, or its end."""
        while self.end is None and self.elapsed < moment:
            self._pump(min(_PUMP_S, max(moment - self.elapsed, 0.001)))

    def pump_for(self, seconds: float) -> None:
        """Handle records for so many seconds, even before the load's start or after its end."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            if self._run is None or self.end is not None:
                time.sleep(left)
            else:
                self._pump(min(left, _PUMP_S))

    def _last_end(self, number: int) -> float:
        return self.phases[number].end_s if number in self.phases else 0.0

    def note(self, event: str, time_ns: int | None = None, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Add an event to the run's, at a time on the monotonic clock or now.

        An event before the load gets the load's start.
        """
        with shielded():
            self.writer.event(self.time_of(time_ns), event, **facts)

    def note_beside(self, event: str, time_ns: int, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """As `note`, from a thread other than the main one: it holds no interruption back."""
        self.writer.event(self.time_of(time_ns), event, **facts)

    def time_of(self, time_ns: int | None) -> float:
        """Convert a time of the monotonic clock, or now, into seconds of the load; 0 before its start."""
        if self._run is None or time_ns is None:
            return self.elapsed
        return max(time_ns - self._run.origin_ns, 0) / 1e9

    @contextmanager
    def expecting(self, what: str) -> Iterator[None]:
        """Tell the watcher of a planned failure ``what``: errors in this context are its effect."""
        self._watcher.expect(what)
        try:
            yield
        finally:
            self._watcher.expect(None)

    # --- records --------------------------------------------------------------------------------------------

    def _pump(self, seconds: float) -> bool:
        """Handle the records of the next seconds; returns whether there was any."""
        if self._run is None:
            return False
        with shielded():
            text = self._run.next(seconds)
            if text is not None:
                self._handle(json.loads(text))
        return text is not None

    def _handle(self, record: dict[str, Any]) -> None:
        match record["record"]:
            case "interval":
                self._interval(record)
                for listener in self.listening:
                    listener(record)
            case "phase":
                facts = {key: record[key] for key in ("phase", "name", "kind", "labels")}
                if loads := self._asked_loads.described(record["phase"]):
                    facts["loads"] = loads
                self.writer.event(record["time_s"], "phase", **facts)
                self.phase_name = str(record["name"])
                self.is_idle = self._idle_phases.get(record["phase"], self.is_idle)
                self._watcher.phase(record)
            case "error":
                record["message"] = masked(record["message"])
                keys = (
                    "class",
                    "code",
                    "message",
                    "outcome_unknown",
                    "transaction",
                    "tenant",
                    "role",
                    "count",
                )
                self.writer.event(record["time_s"], "error", **{key: record[key] for key in keys})
                self._watcher.error(record)
            case "history":
                facts = {key: value for key, value in record.items() if key != "record"}
                self.writer.event(record["to_s"], "history", **facts)
            case "gap":
                self._gap(record)
            case "end":
                if failure := record.get("failure"):
                    record["failure"] = masked(str(failure))
                self.end = record

    def _interval(self, record: dict[str, Any]) -> None:
        self.writer.interval(record)
        start, end = record["start_s"], record["end_s"]
        self._told_s = end
        phase = self.phases.get(record["phase"])
        if phase is None:
            phase = self.phases[record["phase"]] = PhaseRecord(number=record["phase"], start_s=start)
        phase.end_s = end
        latency = _engine.Histogram()
        for series in record["series"]:
            for outcome in ("committed", "aborted", "failed", "unstarted"):
                self._totals[outcome] += series[outcome]
            phase.committed += series["committed"]
            phase.failed += series["failed"]
            if encoded := series.get("latency"):
                latency.add(_engine.Histogram.decode(encoded))
        phase.latency.add(latency)
        # Of all series together, for the watcher: percentiles of series cannot be combined.
        record["p99_ms"] = latency.quantile(0.99) / 1e6 if latency.count else None
        for total, name in ((phase.sessions, "sessions"), (phase.disconnected, "disconnected")):
            total.append(sum(tenant[name] for tenant in record["tenants"]))
        phase.connected = sum(tenant["connected"] for tenant in record["tenants"])
        phase.connections_failed += sum(tenant["lost"] + tenant["refused"] for tenant in record["tenants"])
        self.writer.metrics(end, "client", client_metrics(record).items())
        if not any(tenant["moving"] for tenant in record["tenants"]):
            self._all_moved_s = start
        for tenant in record["tenants"]:
            self._tenant_events(end, tenant)
            if (waited := tenant["woken_s"]) is not None:
                facts = {"phase": record["phase"], "tenant": tenant["tenant"], "waited_s": round(waited, 6)}
                self.writer.event(end, "woken", **facts)
            if (at := tenant["reached_s"]) is not None:
                self.reached_s = at
                self.writer.event(at, "reached", phase=record["phase"], tenant=tenant["tenant"])
        self._watcher.interval(record)

    def _gap(self, record: Mapping[str, Any]) -> None:
        facts = {
            "stopped_s": round(record["stopped_s"], 3),
            "suspended_s": round(record["suspended_s"], 3),
            "message": _gap_text(record),
        }
        self.writer.event(record["time_s"], "gap", **facts)
        self._watcher.gap({"time_s": record["time_s"], **facts})

    def _tenant_events(self, time_s: float, tenant: Mapping[str, Any]) -> None:
        self._totals["dropped"] += tenant["dropped"]
        if tenant["dropped"]:
            self.writer.event(time_s, "dropped", tenant=tenant["tenant"], count=tenant["dropped"])
        for state in ("lost", "restored", "refused"):
            # First connections of sessions that are added under load are no events.
            if tenant[state] and not (state == "restored" and not self._has_lost):
                self.writer.event(
                    time_s, "connection", state=state, tenant=tenant["tenant"], count=tenant[state]
                )
            self._has_lost |= state != "restored" and bool(tenant[state])

    _has_lost = False

    # --- the end --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the load: start no more transactions, and wait for those in flight.

        Returns after the engine's last record, at the latest after the timeouts.
        """
        if self._run is None:
            return
        self._run.stop()
        limit = time.monotonic() + self._description["drain_timeout_ms"] / 1000 + _END_S
        while self.end is None and time.monotonic() < limit:
            self._pump(_PUMP_S)

    @property
    def totals(self) -> dict[str, int]:
        """The transactions by outcome; complete after ``stop``."""
        totals = dict(self._totals)
        if self.end is not None:
            totals |= {key: self.end[key] for key in ("started", "in_flight", "uncertain")}
        return totals

    @property
    def has_begun(self) -> bool:
        """Whether the load has begun; otherwise no transaction was started."""
        return self._run is not None

    @property
    def is_complete(self) -> bool:
        """Whether every part of the engine ended; otherwise the number started is not known."""
        return self.end is not None and bool(self.end["complete"])

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the load; 0 before it."""
        return self._run.elapsed() if self._run is not None else 0.0

    @property
    def origin_ns(self) -> int:
        """The start of the load on the monotonic clock. Raises ``MeasurementError`` before it."""
        return self._engine_run.origin_ns

    def identity_fault(self) -> str | None:
        """Say by how much started = committed + aborted + failed + in flight is off; None if it holds."""
        totals = self.totals
        ended = sum(totals[key] for key in ("committed", "aborted", "failed", "in_flight"))
        if not self.is_complete or totals["started"] == ended:
            return None
        return f"{totals['started']} transactions were started and {ended} are accounted for"


def _gap_text(record: Mapping[str, Any]) -> str:
    """Describe a gap, whose effects are not the database's."""
    since = f"from {record['time_s']:.1f} s on"
    if record["suspended_s"] > record["stopped_s"]:
        return (
            f"the machine was suspended for {record['suspended_s']:.1f} s at {record['time_s']:.1f} s of the run,"
            " in which its clock stood still: connections may have been lost by that alone"
        )
    return (
        f"nephoscope itself did not run for {record['stopped_s']:.1f} s, {since}:"
        " rates and latencies of that time are not the database's"
    )
