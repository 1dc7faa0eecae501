"""Executes sources on a target, one after another and repeatedly, into a run directory."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from nephoscope import __version__, _engine
from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.interrupts import Interrupted, shielded
from nephoscope.settings.base import Settings
from nephoscope.store.layout import new_run_directory
from nephoscope.store.writer import RunWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nephoscope.storage.sources import Source

_LONGEST_WAIT_S = 3600.0
"""Of a record: an interval comes each second, and the end at the latest when the drain is over."""
_LAST_WORDS_S = 10.0


class ExecutionSettings(Settings):
    """How requests are executed."""

    target: str
    """The URL of the target."""
    depth: Annotated[int, Field(ge=1, le=65536)] = 64
    """How many requests may be in flight."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Threads."""
    speed: Annotated[float, Field(gt=0)] = 1.0
    """How much faster than captured."""
    syncs: Literal["captured", "never"] | Annotated[int, Field(ge=1, lt=2**32)] = "captured"
    """When what was written is made durable: as captured, never, or after every so many writes."""
    give_up_s: Annotated[float, Field(gt=0)] = 10.0
    """A request that is later than this when a session is free for it is dropped."""
    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """How long a request may take, where the target can tell."""
    drain_s: Annotated[float, Field(gt=0)] = 10.0
    """How long requests that have not ended are waited for after the last was due."""
    interval_s: Annotated[float, Field(ge=0.001)] = 1.0
    """The length of an interval."""
    io: Literal["auto", "uring", "epoll"] = "auto"
    """How threads wait."""
    repetitions: Annotated[int, Field(ge=1)] = 3
    """How often each source is executed."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Of Poisson times."""


def execute(
    sources: Sequence[Source],
    settings: ExecutionSettings,
    target: _engine.StorageTarget,
    runs: Path,
    say: Callable[[str], None],
) -> tuple[Path, Interrupted | None]:
    """Execute each source as often as there are repetitions; gives the run directory.

    The order of the sources moves on by one from repetition to repetition. What a signal interrupts is kept, and the
    interruption comes back with it. A run of which most requests of a source failed has the status ``failed``.

    Raises:
        InputError: the target cannot be taken.
        MeasurementError: a measurement failed; what there is of it is in the run directory.

    """
    say(f"preparing {settings.target}")
    target.prepare([source.native for source in sources])
    folder = new_run_directory(runs, "storage")
    writer = RunWriter(folder, _manifest(sources, settings, target), _study(sources, settings))
    run = _Run(writer, target, settings)
    status, reason, interruption = "measured", None, None
    try:
        for phase, (repetition, source) in enumerate(_order(sources, settings.repetitions)):
            again = f", repetition {repetition} of {settings.repetitions}" if settings.repetitions > 1 else ""
            say(f"{source.name}: {len(source.columns['time_us']):,} requests{again}")
            run.one(phase, repetition, source)
    except Interrupted as error:
        status, reason, interruption = "interrupted", str(error) or "interrupted", error
    except NephoscopeError as error:
        with shielded():
            writer.finish("failed", str(error), run.totals)
        raise
    if status == "measured" and (reason := run.mostly_failed()):
        status = "failed"
    with shielded():
        writer.finish(status, reason, run.totals)
    return folder, interruption


def _order(sources: Sequence[Source], repetitions: int) -> Iterator[tuple[int, Source]]:
    """Interleave: whatever changes with time meets all sources alike."""
    for repetition in range(repetitions):
        first = repetition % len(sources)
        for source in (*sources[first:], *sources[:first]):
            yield repetition + 1, source


class _Run:
    """A run that goes on."""

    def __init__(self, writer: RunWriter, target: _engine.StorageTarget, settings: ExecutionSettings) -> None:
        self.writer = writer
        self.target = target
        self.settings = settings
        self.origin_ns = _engine.monotonic_ns()
        self.totals = {"started": 0, "in_flight": 0}
        self.ended: dict[str, tuple[int, int]] = {}
        """Of each source, how many requests were done, and how many failed."""

    def mostly_failed(self) -> str | None:
        """Say of which sources more requests failed than were done: what is left of them is no sample of them."""
        words = [
            f"{source}: {failed:,} of {done + failed:,} requests failed"
            for source, (done, failed) in self.ended.items()
            if failed > done
        ]
        return "; ".join(words) or None

    def one(self, phase: int, repetition: int, source: Source) -> None:
        """Execute a source once; an interruption ends it, and what was measured is written first."""
        options = self._options(phase, source.name)
        execution = self.target.execute(source.native, json.dumps(options))
        time_s = (execution.origin_ns - self.origin_ns) / 1e9
        name = f"{source.name} {repetition}"
        labels = {
            "repetition": repetition,
            "source": source.name,
            "planned_s": source.seconds / self.settings.speed,
        }
        self.writer.event(time_s, "phase", phase=phase, name=name, kind="measured", labels=labels)
        try:
            self._record(execution, _LONGEST_WAIT_S, phase, repetition)
        except Interrupted:
            with shielded():
                execution.stop()
                self._record(execution, _LAST_WORDS_S, phase, repetition)
            raise

    def _options(self, phase: int, source: str) -> dict[str, Any]:
        settings = self.settings
        syncs = settings.syncs if isinstance(settings.syncs, str) else {"every": settings.syncs}
        kept = ("depth", "workers", "speed", "give_up_s", "timeout_s", "drain_s", "interval_s", "io")
        own = {"source": source, "phase": phase, "origin_ns": self.origin_ns, "syncs": syncs}
        return {**{name: getattr(settings, name) for name in kept}, **own}

    def _record(
        self, execution: _engine.StorageExecution, patience_s: float, phase: int, repetition: int
    ) -> None:
        """Write what comes until the end."""
        while (text := execution.next(patience_s)) is not None:
            record: dict[str, Any] = json.loads(text)
            kind = record.pop("record")
            # A record is written whole, or not at all.
            with shielded():
                if kind == "interval":
                    self._interval(record)
                elif kind == "error":
                    self.writer.event(record.pop("time_s"), "error", **record)
                else:
                    self._end(record, phase, repetition)
                    return
        raise MeasurementError("the execution did not end; what was measured is kept")

    def _interval(self, record: Mapping[str, Any]) -> None:
        self.writer.interval(record)
        tenant = record["tenants"][0]
        lag = record["lag"] or {}
        figures = {
            "cpu_s": record["cpu_s"],
            "cpu_busy": record["cpu_busy"],
            "arrivals": tenant["arrivals"],
            "waited": record["waited"],
            "dropped": tenant["dropped"],
            "connected": tenant["connected"],
            **{f"lag_{name}": lag[name] for name in ("p50_us", "p99_us", "max_us") if name in lag},
        }
        self.writer.metrics(
            record["end_s"], "client", [(name, float(value)) for name, value in figures.items()]
        )

    def _end(self, record: dict[str, Any], phase: int, repetition: int) -> None:
        for name in self.totals:
            self.totals[name] += record[name]
        done, failed = self.ended.get(record["source"], (0, 0))
        self.ended[record["source"]] = (done + record["done"], failed + record["failed"])
        self.writer.event(record.pop("end_s"), EXECUTED, phase=phase, repetition=repetition, **record)


EXECUTED = "executed"
"""The event at the end of an execution: counts of requests, and the processor time of the workers."""


def _manifest(
    sources: Sequence[Source], settings: ExecutionSettings, target: _engine.StorageTarget
) -> dict[str, Any]:
    load_average = 0.0
    with contextlib.suppress(OSError):
        load_average = round(os.getloadavg()[0], 2)
    return {
        "nephoscope": __version__,
        "study": "storage",
        "seed": settings.seed,
        "clock": {"origin": datetime.now(UTC).isoformat()},
        "host": {
            "name": platform.node(),
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_average": load_average,
        },
        "load": {"threads": settings.workers, "sessions": settings.depth, "interval_s": settings.interval_s},
        "storage": {
            **settings.model_dump(mode="json"),
            "target": _engine.redact(settings.target),
            "facts": target.facts(),
            "sources": [{"name": source.name, **source.told} for source in sources],
        },
    }


def _study(sources: Sequence[Source], settings: ExecutionSettings) -> str:
    """Write what was asked for as TOML: texts and numbers look alike there and in JSON."""
    asked = {**settings.model_dump(mode="json"), "target": _engine.redact(settings.target)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in asked.items()]
    return "\n".join([f"sources = {json.dumps([source.name for source in sources])}", *lines]) + "\n"
