"""The evaluator ``metastability``: whether goodput returns after a trigger, by retry policy, and up to which rate.

N. Bronson, A. Aghayev, A. Charapko, T. Zhu, "Metastable Failures in Distributed Systems", HotOS 2021: a system is
vulnerable at a load that it serves well, if a trigger brings it into a state that sustains itself when the trigger is
long over, such as by retries of what clients have given up.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope import _engine
from nephoscope.evaluators.acting import inject, node_of
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.bracket import SearchBounds, highest_rate, typical_steps
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.metastability.goodput import PARTS, Interval, Part, judged
from nephoscope.evaluators.metastability.reading import read_policies
from nephoscope.evaluators.metastability.settings import MetastabilitySettings
from nephoscope.settings.actions import FAULTS
from nephoscope.settings.loads import Load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.evaluators.metastability.goodput import Outcome
    from nephoscope.evaluators.stored import Stored
    from nephoscope.settings.registered import MeasureSettings
    from nephoscope.settings.retries import RetrySetting
    from nephoscope.study.workload import DescribedWorkload

STUDYS_OWN = "load.retry"
"""The name of the policy that is the study's own."""


class Metastability(Evaluator):
    """Searches for the highest rate at which goodput returns after a trigger, policy by policy."""

    name: ClassVar[str] = "metastability"
    summary: ClassVar[str] = (
        "a trigger under each retry policy: whether goodput returns, and up to which rate"
    )
    settings_type: ClassVar[type[MeasureSettings]] = MetastabilitySettings

    def __init__(self, settings: MetastabilitySettings, workload: DescribedWorkload, index: int) -> None:
        """Resolve the mix."""
        self._settings = settings
        self._index = index
        self._label, self._mix = workload.mix(settings.mix, f"measure.{index}.mix")
        self._access = settings.access or workload.access(self._label)
        self._steps = 0

    def seconds(self) -> float:
        """Give about how long the search takes; how many steps it has is known only afterwards."""
        of = self._settings
        each = of.rest + of.warmup + of.before + of.length + of.patience
        return max(len(of.policies), 1) * typical_steps(of.precision, of.repetitions) * each

    def demands(self, sessions: int) -> Iterator[Demand]:
        """Give the mix once: an open load may have all sessions."""
        yield Demand(self._label, (sessions,), self._mix)

    # --- driving --------------------------------------------------------------------------------------------

    def drive(self, means: Means) -> None:
        """Search for the rate of each policy. Raises ``MeasurementError`` where the trigger fails."""
        of = self._settings
        if of.trigger != "surge" and not means.can(self._index, FAULTS[of.trigger]):
            return
        policies = of.policies or {STUDYS_OWN: means.study.load.retry}
        for name, policy in policies.items():
            search = _PolicySearch(partial(self._measure, means, name, policy))
            highest_rate(SearchBounds.of(of, of.repetitions), search.holds, search.certain)
        means.rest("after the last trigger", self._mix, self.labels(self._index))

    def _measure(
        self, means: Means, name: str, policy: RetrySetting, rate: float, repetition: int
    ) -> Outcome:
        """Run a step, and judge it."""
        of, load = self._settings, means.load
        self._steps += 1
        labels = self.labels(
            self._index,
            mix=self._label,
            policy=name,
            rate=rate,
            repetition=max(repetition, 1),
            step=self._steps,
            confirms=repetition > 0,
            search=True,
        )
        phases = self._request(load, policy, rate, labels)
        trigger_s = load.planned_end - of.patience - of.length
        counting = _Counting(phases, of.limit)
        load.listening.append(counting.add)
        try:
            over_s = trigger_s + of.length
            with load.expecting("trigger and what follows from it"):
                if of.trigger != "surge":
                    load.pump_until(trigger_s)
                    node = node_of(means, of.target)
                    inject(means, of.trigger, node, labels, pause_s=of.length, limit_s=of.action_limit)
                    over_s = max(over_s, load.elapsed)
                load.wait()
        finally:
            load.listening.remove(counting.add)
        return judged(counting.parts, over_s, of).outcome

    def _request(
        self, load: LoadRun, policy: RetrySetting, rate: float, labels: Mapping[str, Any]
    ) -> dict[int, Part]:
        """Request the phases of a step; return the parts of the measured ones by their numbers."""
        of = self._settings
        level = Load(rate=rate, arrivals=of.arrivals, mix=self._mix, access=self._access)
        title = f"{labels['policy']} {rate:g}/s"
        rest = Load(rate=0.0, mix=self._mix)
        for name, kind, seconds, asked in (
            ("rest", "pause", of.rest, rest),
            ("warm-up", "warm_up", of.warmup, level),
        ):
            if seconds > 0:
                load.phase(f"{title} {name}", kind, seconds, asked, labels, retry=policy)
        lasts = {"before": of.before, "trigger": of.length, "after": of.patience}
        loads = {"trigger": Load(rate=rate * of.surge)} if of.trigger == "surge" else {}
        return {
            load.phase(
                f"{title} {part}",
                "measure",
                lasts[part],
                loads.get(part, level),
                {**labels, "metastability": part},
                retry=policy,
            ): part
            for part in PARTS
        }

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, stored: Stored) -> Measurements:
        """Read the rate of each policy with its steps; there is no score of it."""
        of = self._settings
        policies, warnings = read_policies(stored, of)
        if (why := stored.why_not()) is not None:
            warnings.append(f"metastability was not measured whole: {why}")
        detail = {"limit_ms": of.limit * 1e3, "trigger": _trigger(of), "policies": policies}
        details = {self.name: {str(self._index): detail}} if policies else {}
        return Measurements(warnings=warnings, details=details)


def _trigger(of: MetastabilitySettings) -> Mapping[str, Any]:
    told: dict[str, Any] = {"kind": of.trigger, "patience_s": of.patience}
    if of.trigger == "surge":
        return {**told, "factor": of.surge, "length_s": of.length}
    return {**told, "target": of.target, "length_s": of.length if of.trigger == "pause" else None}


class _PolicySearch:
    """The steps of a policy that were measured."""

    def __init__(self, measure: Callable[[float, int], Outcome]) -> None:
        self._measure = measure
        self._outcomes: dict[float, list[Outcome]] = {}

    def holds(self, rate: float, repetition: int) -> bool:
        """Measure a rate; once more if the trigger could show nothing.

        The client may have been late, or the server still busy with what the step before has left it.
        """
        outcome = self._step(rate, repetition)
        if outcome in ("not known", "too much before"):
            outcome = self._step(rate, repetition)
        return outcome == "returned"

    def certain(self) -> tuple[float | None, float | None]:
        """Return the highest rate at which goodput returned each time, and the lowest at which it never did."""
        held = [rate for rate, of in self._outcomes.items() if set(of) == {"returned"}]
        not_held = [rate for rate, of in self._outcomes.items() if "returned" not in of]
        return max(held, default=None), min(not_held, default=None)

    def _step(self, rate: float, repetition: int) -> Outcome:
        outcome = self._measure(rate, repetition)
        self._outcomes.setdefault(rate, []).append(outcome)
        return outcome


class _Counting:
    """Collects the intervals of a step while it goes on."""

    def __init__(self, phases: Mapping[int, Part], limit_s: float) -> None:
        self._phases = phases
        self._limit_ns = round(limit_s * 1e9)
        self.parts: dict[Part, list[Interval]] = {part: [] for part in PARTS}

    def add(self, record: Mapping[str, Any]) -> None:
        """Add an interval's record, if it is of the step."""
        part = self._phases.get(record["phase"])
        if part is None:
            return
        good = ended = retries = 0
        for series in record["series"]:
            if encoded := series.get("latency"):
                good += _engine.Histogram.decode(encoded).count_up_to(self._limit_ns)
            ended += series["committed"] + series["aborted"] + series["failed"]
            retries += series["retries"]
        lag = record["lag"]
        lag_s = lag["max_us"] / 1e6 if lag else 0.0
        arrivals = sum(tenant["arrivals"] for tenant in record["tenants"])
        interval = Interval(record["start_s"], record["end_s"], arrivals, good, ended, retries, lag_s)
        self.parts[part].append(interval)
