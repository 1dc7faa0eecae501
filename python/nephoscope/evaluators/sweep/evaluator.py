"""The evaluator ``sweep``: throughput, latency, cost and P at each of some values of a parameter of the server.

CloudyBench, section III-H and Figure 8, where the parameter is the size of the buffer.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.errors import MeasurementError
from nephoscope.evaluators.acting import Acting
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.points import read_points, summed_up
from nephoscope.evaluators.sweep.settings import SweepSettings, Value
from nephoscope.scoring.formulas import Absent, p_score
from nephoscope.settings.actions import Action
from nephoscope.settings.loads import (
    Load,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.evaluators.points import Point
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.study.workload import DescribedWorkload
    from nephoscope.systems.base import Done

_PATIENCE_S = 30.0
"""How long a setting is waited for that was interrupted, before the parameter is put back."""
_TAKES_HOLD_S = 2.0


class Sweep(Evaluator):
    """Sets a parameter of the server to one value after another, and measures at each."""

    name: ClassVar[str] = "sweep"
    summary: ClassVar[str] = "any parameter of the server: TPS, latency, cost and P at each of its values"
    settings_type: ClassVar[type[MeasureSettings]] = SweepSettings

    def __init__(self, settings: SweepSettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mixes."""
        self._settings = settings
        self._index = index
        self._mixes = workload.mixes(settings.mixes, f"measure.{index}.mixes")
        self._access = {mix: settings.access or workload.access(mix) for mix in self._mixes}
        self._acting: Acting[Done] | None = None

    def seconds(self) -> float:
        """Sum the phases; how long setting takes is not known."""
        of = self._settings
        points = len(of.values) * len(self._mixes) * len(of.concurrency) * of.repetitions
        return points * (of.warmup + of.duration)

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give each level of each mix."""
        del sessions
        for mix, weights in self._mixes.items():
            for level in self._settings.concurrency:
                yield Demand(f"{mix} c={level}", (level,), weights)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Measure each value; the parameter is restored whatever happens."""
        of, provider = self._settings, means.provider
        if Action.SET not in provider.actions():
            means.unsupported(self._index, f"the provider {provider.name} cannot {Action.SET} parameters")
            return
        try:
            before = provider.parameter(of.parameter)
        except MeasurementError as error:
            means.unsupported(self._index, f"{of.parameter} could not be put back afterwards: {error}")
            return
        try:
            for repetition in range(1, of.repetitions + 1):
                for place in range(len(of.values)):
                    self._at(means, place, repetition, before)
        except MeasurementError as error:
            means.load.note("action_failed", measure=self._index, message=str(error))
            raise
        finally:
            self._put_back(means, before)

    def _at(self, means: Means, place: int, repetition: int, before: Value) -> None:
        """Set the parameter while the load has no connection, and measure."""
        of, load, value = self._settings, means.load, self._settings.values[place]
        labels = self.labels(
            self._index, parameter=of.parameter, value=value, place=place, repetition=repetition
        )
        self._rest(means, labels)
        last = means.provider.parameter(of.parameter)
        done = self._set(means, value)
        held = self._held(means, value, last)
        load.note(
            "setting",
            done.began_ns,
            **labels,
            held=held,
            before=before,
            took_s=(done.ended_ns - done.began_ns) / 1e9,
        )
        for mix, weights in self._mixes.items():
            for concurrency in of.concurrency:
                level = Load(
                    concurrency=float(concurrency), mix=weights, access=self._access[mix], release=False
                )
                name = f"{mix} {of.parameter}={value}"
                of_point = {**labels, "mix": name, "of_mix": mix, "concurrency": concurrency}
                if of.warmup > 0:
                    load.phase(f"{name} c={concurrency} warm-up", "warm_up", of.warmup, level, of_point)
                load.phase(f"{name} c={concurrency}", "measure", of.duration, level, of_point)
        load.wait()
        after = means.provider.parameter(of.parameter)
        if after != held:
            message = f"{of.parameter} was {held} before {value} was measured, and {after} after it"
            load.note("warning", message=message)

    def _held(self, means: Means, value: Value, last: Value) -> Value:
        """Return the parameter's present value; a reload of settings may take a moment."""
        until = time.monotonic() + _TAKES_HOLD_S
        while True:
            held = means.provider.parameter(self._settings.parameter)
            if held != last or str(value) == str(last) or time.monotonic() > until:
                return held
            means.load.pump_for(0.05)

    def _rest(self, means: Means, labels: Mapping[str, Any]) -> None:
        """Let the load rest: the parameter is set while no session is connected."""
        means.rest(f"setting {self._settings.parameter}", next(iter(self._mixes.values())), labels)

    def _set(self, means: Means, value: Value) -> Done:
        provider, settings = means.provider, {self._settings.parameter: value}
        self._acting = Acting(
            lambda _: provider.act(Action.SET, settings=settings), f"setting {self._settings.parameter}"
        )
        done = self._acting.wait(means.load, self._settings.limit)
        self._acting = None
        return done

    def _put_back(self, means: Means, before: Value) -> None:
        """Restore the parameter; an error becomes a warning."""
        of, load = self._settings, means.load
        try:
            if self._acting is not None:
                self._acting.give_up(means.provider, _PATIENCE_S)
            now = means.provider.parameter(of.parameter)
            if now != before:
                if load.end is None:
                    self._rest(means, self.labels(self._index))
                self._set(means, before)
                now = self._held(means, before, now)
            load.note("setting", measure=self._index, parameter=of.parameter, value=before, held=now)
        except MeasurementError as error:
            message = f"{of.parameter} was {before} and has not been put back: {error}"
            load.note("warning", message=message)

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read TPS, latency, cost and P at each value."""
        read = read_points(stored, self._settings.slo)
        points, warnings = read.points, read.warnings
        if reason := stored.why_not():
            warnings.append(f"sweep of {self._settings.parameter}: {reason}")
        if not points:
            return Measurements(warnings=warnings, shortfalls=read.shortfalls)
        labels = {phase.number: phase.labels for phase in stored.run.phases}
        groups: dict[tuple[int, str, float], list[Point]] = {}
        for point in points:
            of = labels[point.phase]
            groups.setdefault((int(of["place"]), str(of["of_mix"]), point.concurrency or 0.0), []).append(
                point
            )
        detail = {
            "parameter": self._settings.parameter,
            "before": next(
                (event.get("before") for event in _settings_of(stored) if "before" in event), None
            ),
            "values": [
                self._value(stored, place, groups)
                for place in range(len(self._settings.values))
                if any(key[0] == place for key in groups)
            ],
        }
        details = {self.name: {str(self._index): detail}}
        return Measurements(points=points, warnings=warnings, shortfalls=read.shortfalls, details=details)

    def _value(
        self, stored: Stored, place: int, groups: Mapping[tuple[int, str, float], Sequence[Point]]
    ) -> dict[str, Any]:
        """Describe a value: the setting, its cost, and the results of each mix."""
        resources = stored.resources
        if resources is not None and self._settings.resources:
            resources = self._settings.resources[place].over(resources)
        per_minute = stored.prices.per_minute(resources) if resources else None
        times = [event for event in _settings_of(stored) if event.get("place") == place]
        mixes: dict[str, Any] = {}
        for (at, mix, concurrency), points in groups.items():
            if at == place:
                entry = _point(stored, concurrency, points, per_minute)
                mixes.setdefault(mix, {"points": []})["points"].append(entry)
        for of_mix in mixes.values():
            tps = [entry["tps"] for entry in of_mix["points"]]
            of_mix["tps"] = math.fsum(tps) / len(tps)
            of_mix["p"] = _p(of_mix["tps"], per_minute)
        return {
            "value": self._settings.values[place],
            "held": times[-1].get("held") if times else None,
            "took_s": [event.get("took_s") for event in times],
            "resources": resources.model_dump(mode="json") if resources else None,
            "cost_per_minute": per_minute,
            "mixes": mixes,
        }


def _settings_of(stored: Stored) -> list[Mapping[str, Any]]:
    """List the times and values of the parameter's settings."""
    return [e for e in stored.run.events if e.get("event") == "setting" and e.get("measure") == stored.index]


def _point(
    stored: Stored, concurrency: float, points: Sequence[Point], per_minute: float | None
) -> dict[str, Any]:
    entry = summed_up(stored, points)
    ci95 = entry["ci95"]
    return {
        "concurrency": concurrency,
        **entry,
        "p": _p(entry["tps"], per_minute),
        "p_ci95": [_p(max(end, 0.0), per_minute) for end in ci95] if ci95 and per_minute else None,
    }


def _p(tps: float, per_minute: float | None) -> float | None:
    """P, where the resources are known and cost something."""
    score = p_score(tps, per_minute) if per_minute is not None else Absent(reason="no resources are declared")
    return score if isinstance(score, float) else None
