"""Nodes that failed under load: each failure as a time line (the paper's Figure 7), and all of them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.evaluators.outages import LATE_S
from nephoscope.report.kit import failing, method, scored
from nephoscope.report.kit.charts import Axis, Line, Rule, Span, XYChart
from nephoscope.report.kit.parts import Estimate
from nephoscope.report.kit.run import class_name
from nephoscope.tables.numbers import count, duration, finite, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nephoscope.report.kit.run import Run, ShownPhase


from nephoscope.report.kit.parts import Method, Number, Part

PLACE, ANCHOR, LABEL = 30, "failures", "Failures"
NO_MIX = {"fault"}


class FailureRow(Part):
    """A failure; ``resolution_ms`` is how far apart the probes on both sides of the service's return are.

    A ``recovery_s`` below ``recovery_resolution_s`` is known only to be so.
    """

    name: str
    outage_s: Number = None
    resolution_ms: Number = None
    recovery_s: Number = None
    recovery_resolution_s: Number = None
    interrupted: bool
    failed_probes: int | None = None
    late_probes: int | None = None
    tps_before: Number = None
    errors: str = ""
    acknowledged: int | None = None
    lost: int | None = None
    indeterminate: int | None = None


class FailureSection(Part):
    """Nodes that failed, and the consequences (the paper's Figure 7 for each)."""

    statement: str
    charts: tuple[XYChart, ...]
    rows: tuple[FailureRow, ...]
    outage: Estimate
    recovery: Estimate
    medians: tuple[str, ...] = ()
    """For each role a sentence of its medians."""
    later: tuple[str, ...] = ()
    """A later interruption of the service, after an outage."""
    note: str = ""
    method: tuple[Method, ...] = ()


MOST_DRAWN = 12
"""More failures than this are in the table only."""


@dataclass(frozen=True)
class _Failure:
    """A failure as the evaluator tells it."""

    fault: str
    late_s: float
    told: Mapping[str, Any]

    def time(self, key: str) -> float | None:
        """Return one of its times, in seconds since the start of the load."""
        return finite(self.told.get(key))

    def whole(self, key: str) -> int | None:
        """Return one of its counts."""
        return scored.whole(self.told.get(key))

    @property
    def role(self) -> str:
        return str(self.told.get("role") or "")

    @property
    def name(self) -> str:
        return f"{self.fault} of {self.role}, repetition {count(self.told.get('repetition'))}"

    @property
    def interrupted(self) -> bool:
        return bool(self.told.get("interrupted"))

    @property
    def outage_s(self) -> float | None:
        """From the fault to the service back; None where it did not come back."""
        return _between(self.time("injected_s"), self.time("service_back_s"))

    @property
    def recovery_s(self) -> float | None:
        """From there to the TPS back."""
        return _between(self.time("service_back_s"), self.time("tps_back_s"))

    @property
    def recovery_resolution_s(self) -> float:
        """A recovery that is shorter is known only to be so; 0 where the run does not tell."""
        return self.time("recovery_resolution_s") or 0.0

    @property
    def later(self) -> list[Mapping[str, Any]]:
        """Later interruptions of the service, after the outage."""
        return [scored.table(entry) for entry in scored.sequence(self.told.get("later"))]


def build(run: Run) -> FailureSection | None:
    """Return the section; None where no failure was measured."""
    found = _told(run)
    if not found:
        return None
    drawn = [chart for failure in found[:MOST_DRAWN] if (chart := _chart(run, failure)) is not None]
    undrawn = len(found) - len(drawn)
    return FailureSection(
        statement=_statement(found),
        charts=tuple(drawn),
        rows=tuple(_row(failure) for failure in found),
        outage=_score(run, "F"),
        recovery=_score(run, "R"),
        medians=tuple(_medians(run, found)),
        later=tuple(_later(found)),
        note=f"{count(undrawn)} more failures are in the table only." if undrawn > 0 else "",
        method=method.of(run, "failover"),
    )


def _told(run: Run) -> list[_Failure]:
    """Return all failures; of a run whose scores have no details, those that F tells."""
    entries = list(scored.entries(run, "failover").values()) or [
        scored.table(scored.score(run, "F").get("detail"))
    ]
    return [
        _Failure(str(entry.get("fault") or "fault"), finite(entry.get("late_s")) or LATE_S, told)
        for entry in entries
        for told in map(scored.table, scored.sequence(entry.get("failures")))
        if finite(told.get("injected_s")) is not None
    ]


def _score(run: Run, key: str) -> Estimate:
    found = scored.score(run, key)
    return Estimate(value=found.get("value"), ci95=scored.ci95(found.get("ci95")), by_ends=True)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


# --- words ------------------------------------------------------------------------------------------------------


def _statement(found: Sequence[_Failure]) -> str:
    """Write a sentence on the outage of service and throughput, and on lost commits."""
    outages = [failure.outage_s for failure in found if failure.outage_s is not None]
    never = len(found) - len(outages)
    kinds = ", ".join(dict.fromkeys(f"{failure.fault} of {failure.role}" for failure in found))
    said = f"{count(len(found))} {'failure' if len(found) == 1 else 'failures'} ({kinds}): "
    if outages and max(outages) == 0:
        said += "no interruption was seen"
    elif outages:
        said += f"the service was back after {_range(outages)}"
    if never:
        said += f"{'; ' if outages else ''}it did not come back after {count(never)} of them"
    recoveries = [failure for failure in found if failure.recovery_s is not None]
    if recoveries:
        said += f", and the load was served as before {_recoveries(recoveries)} after that"
    lost = [failure.whole("lost") for failure in found]
    if known := [value for value in lost if value is not None]:
        acknowledged = sum(failure.whole("acknowledged") or 0 for failure in found)
        none = "none" if sum(known) == 0 else count(sum(known))
        said += f"; of {count(acknowledged)} acknowledged commits of the probe {none} were lost"
    return f"{said}."


def _range(seconds: Sequence[float]) -> str:
    low, high = duration(min(seconds)), duration(max(seconds))
    return low if low == high else f"{low} to {high}"


def _recoveries(found: Sequence[_Failure]) -> str:
    """Say how long recoveries took; what is shorter than can be told apart is less than that."""
    known = [one.recovery_s for one in found if (one.recovery_s or 0.0) >= one.recovery_resolution_s]
    below = [
        one.recovery_resolution_s for one in found if (one.recovery_s or 0.0) < one.recovery_resolution_s
    ]
    shown = [_range([value for value in known if value is not None])] if known else []
    return " or ".join([*([f"less than {duration(max(below))}"] if below else []), *shown])


def _medians(run: Run, found: Sequence[_Failure]) -> Iterator[str]:
    """Tell mean and median of F and R for each role; one that did not end has neither."""
    for key, what in (("F", "outage"), ("R", "recovery")):
        roles = scored.table(scored.table(scored.score(run, key).get("detail")).get("roles"))
        for role in dict.fromkeys(failure.role for failure in found):
            told = scored.table(roles.get(role))
            mean, middle = finite(told.get("mean")), finite(told.get("median"))
            if mean is not None and middle is not None:
                yield f"{key}, {what} of {role}: mean {duration(mean)}, median {duration(middle)}"


def _later(found: Sequence[_Failure]) -> Iterator[str]:
    """Tell what interrupted the service again: no part of the outage."""
    for failure in found:
        for entry in failure.later:
            after = _between(failure.time("injected_s"), finite(entry.get("began_s")))
            lasted = _between(finite(entry.get("began_s")), finite(entry.get("back_s")))
            ended = "without an end" if lasted is None else f"for {duration(lasted)}"
            where = str(entry.get("node") or failure.role)
            yield f"{failure.name}: {where} was interrupted again {duration(after)} after the fault, {ended}"


def _message(failure: _Failure) -> str:
    if not failure.interrupted:
        return "No interruption was seen: every probe was served in time."
    probes = f"{count(failure.whole('failed_probes'))} probes failed, {count(failure.whole('late_probes'))} were late"
    if failure.outage_s is None:
        return f"The service did not come back in what was measured; {probes}."
    back = "was not seen to be served as before"
    if failure.recovery_s is not None:
        back = f"was served as before {_recoveries([failure])} later"
    return f"Service back {duration(failure.outage_s)} after the fault, the load {back}; {probes}."


def _row(failure: _Failure) -> FailureRow:
    errors = scored.table(failure.told.get("errors"))
    resolution = finite(failure.told.get("resolution_s"))
    return FailureRow(
        name=failure.name,
        outage_s=failure.outage_s,
        resolution_ms=None if resolution is None else resolution * 1000,
        recovery_s=failure.recovery_s,
        recovery_resolution_s=failure.recovery_resolution_s,
        interrupted=failure.interrupted,
        failed_probes=failure.whole("failed_probes"),
        late_probes=failure.whole("late_probes"),
        tps_before=failure.told.get("tps_before"),
        errors=", ".join(f"{count(number_of)} {class_name(str(name))}" for name, number_of in errors.items()),
        acknowledged=failure.whole("acknowledged"),
        lost=failure.whole("lost"),
        indeterminate=failure.whole("indeterminate"),
    )


# --- the time line ----------------------------------------------------------------------------------------------


def _chart(run: Run, failure: _Failure) -> XYChart | None:
    """Draw the load's TPS around a failure, with what was done and what the probes saw; None without its phase."""
    fault = failure.time("injected_s") or 0.0
    phase = run.phase_at(fault)
    if phase is None:
        return None
    low, high = phase.start_s - fault, phase.end_s - fault
    least = finite(failure.told.get("least_tps"))
    level: list[Line] = []
    if least:
        ends = ((low, least), (high, least))
        level = [Line(name="TPS to come back to", color="muted", dash="dotted", data=ends)]
    return XYChart(
        id=f"failure-{phase.number}",
        title=failure.name[:1].upper() + failure.name[1:],
        unit="committed per second",
        message=_message(failure),
        x=Axis(title="Time since the fault", unit="s", low=low, high=high),
        y=Axis(title="TPS"),
        lines=(
            Line(name="TPS", color="c0", style="steps", data=failing.throughput(run, phase, fault)),
            *level,
            *failing.rugs(run, failure.role, phase, zero_s=fault, late_s=failure.late_s),
        ),
        rules=_rules(run, failure, phase, fault),
        spans=_spans(failure, low, high),
    )


def _rules(run: Run, failure: _Failure, phase: ShownPhase, fault: float) -> tuple[Rule, ...]:
    """Mark the fault, the ends of the actions, and the times of return."""
    rules = [Rule(x=0.0, label="fault", color="problem")]
    for event in run.events_of("fault", "action"):
        at, took = finite(event.get("time_s")), finite(event.get("took_s"))
        if at is not None and took is not None and phase.start_s <= at <= phase.end_s:
            rules.append(Rule(x=at + took - fault, label=f"{event.get('action')} done", dash="dotted"))
    back, full = failure.time("service_back_s"), failure.time("tps_back_s")
    if back is not None and failure.interrupted:
        rules.append(Rule(x=back - fault, label="service back", color="ok"))
    if full is not None:
        label = "latency back" if failure.told.get("load") == "open" else "TPS back"
        rules.append(Rule(x=full - fault, label=label, color="ok"))
    return tuple(sorted(rules, key=lambda rule: rule.x or 0.0))


def _spans(failure: _Failure, low: float, high: float) -> tuple[Span, ...]:
    """Name the phases of a failure: before, outage, recovery, after."""
    spans = [Span(start=low, end=0.0, label="before", color="paper")]
    outage = high if failure.outage_s is None else failure.outage_s
    if outage > 0:
        spans.append(Span(start=0.0, end=outage, label="outage", color="problem-wash"))
    if failure.outage_s is not None:
        recovered = high if failure.recovery_s is None else outage + failure.recovery_s
        if recovered > outage:
            spans.append(Span(start=outage, end=recovered, label="recovery", color="warning-wash"))
        if recovered < high:
            spans.append(Span(start=recovered, end=high, label="after", color="paper"))
    return tuple(spans)


def _how(run: Run, detail: Mapping[str, Any]) -> str:
    """Say how the score was measured."""
    failures = [scored.table(entry) for entry in scored.sequence(detail.get("failures"))]
    roles = dict.fromkeys(f"{detail.get('fault')} of {entry.get('role')}" for entry in failures)
    rates = {plain(entry["probe_rate"]) for entry in run.measures if "probe_rate" in entry}
    probes = f"; probes at {', '.join(sorted(rates))} a second" if rates else ""
    return f"{count(len(failures))} × {', '.join(roles)}{probes}" if failures else ""  # noqa: RUF001 - times


HOW = {"R": _how, "F": _how}
