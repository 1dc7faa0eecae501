"""The engine, and the evaluator ``load``: throughput, latency, errors of simulated systems; a client too slow."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope.calibration.base import Case, Reading
from nephoscope.statistics import half_width
from nephoscope.store.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from nephoscope.calibration.base import Bench, Measured

_SERVICE_MS = 5.0
_CONSTANT = f"sim://?latency=constant({_SERVICE_MS:g}ms)"


def _course(url: str, seconds: float, phase: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Describe a system and one phase of load on it."""
    course = {
        "evaluator": "load",
        "phases": [{"name": "all", "duration": seconds, "mix": "SELECT", **phase}],
    }
    return {"provider": "url", "rw": url}, course


@dataclass(frozen=True)
class _Point:
    """What a run says of its only measured phase."""

    facts: Mapping[str, Any]
    quantile: Callable[[float], float]
    """In milliseconds."""

    @property
    def stated(self) -> float | None:
        """Half of the interval of the throughput."""
        return half_width(self.facts["ci95"])

    def tps(self, planted: float, relative: float) -> Reading:
        """Compare the throughput."""
        return Reading(
            figure="TPS",
            unit="1/s",
            planted=planted,
            read=self.facts["tps"],
            relative=relative,
            stated=self.stated,
        )

    def latency(self, share: float, planted_ms: float, relative: float) -> Reading:
        """Compare a quantile of the latency."""
        read = self.quantile(share)
        return Reading(
            figure=f"p{share * 100:g}", unit="ms", planted=planted_ms, read=read, relative=relative
        )


def _point(measured: Measured) -> _Point:
    (facts,) = measured.scores["points"]
    histogram = measured.run.merged(Selection(phases=frozenset({facts["phase"]})))
    return _Point(facts, lambda share: histogram.quantile(share) / 1e6)


def _constant(bench: Bench) -> Iterator[Reading]:
    """Expect of a service time of 5 ms and 8 sessions 1,600 transactions a second, each of 5 ms."""
    point = _point(bench.measure(*_course(_CONSTANT, bench.seconds(6, 3), {"concurrency": 8})))
    yield point.tps(8 / _SERVICE_MS * 1000, 0.03)
    yield point.latency(0.5, _SERVICE_MS, 0.03)


def _exponential(bench: Bench) -> Iterator[Reading]:
    """Expect quantiles of an exponential law of mean 20 ms; of so many draws the sample errs by some per cent."""
    url = "sim://?latency=exponential(20ms)"
    point = _point(bench.measure(*_course(url, bench.seconds(10, 5), {"rate": 400})))
    for share in (0.5, 0.9):
        yield point.latency(share, -20.0 * math.log(1 - share), 0.10)


def _capacity(bench: Bench) -> Iterator[Reading]:
    """Expect that four places of 5 ms each serve 800 a second, however many sessions ask."""
    url = f"{_CONSTANT}&capacity=4"
    point = _point(bench.measure(*_course(url, bench.seconds(6, 3), {"concurrency": 16})))
    yield point.tps(4 / _SERVICE_MS * 1000, 0.02)
    yield point.latency(0.5, 16 / 4 * _SERVICE_MS, 0.03)


_STALL_RATE, _STALL_AT_S, _STALL_S, _STALL_OF_S = 500, 2.0, 1.0, 6.0


def _stall(bench: Bench) -> Iterator[Reading]:
    """Expect of a stall of 1 s at 500/s that whoever arrives in it waits for its end.

    Coordinated omission would hide that. Of the arrivals, a share of 1/6 falls into the stall; their waits are spread
    evenly from 0 to 1 s.
    """
    url = f"sim://?latency=constant(1ms)&stall={_STALL_AT_S:g}s%2B{_STALL_S:g}s"
    point = _point(bench.measure(*_course(url, _STALL_OF_S, {"rate": _STALL_RATE})))
    for share in (0.9, 0.95, 0.99):
        waited_s = _STALL_S - (1 - share) * _STALL_OF_S
        yield point.latency(share, 1.0 + 1000.0 * waited_s, 0.05)


def _rate(bench: Bench) -> Iterator[Reading]:
    """Expect of a rate of 1,000/s a thousand arrivals in each second, all of them served."""
    url = "sim://?latency=constant(1ms)"
    point = _point(bench.measure(*_course(url, bench.seconds(6, 3), {"rate": 1000})))
    yield point.tps(1000.0, 0.002)


def _errors(bench: Bench) -> Iterator[Reading]:
    """Expect that one in fifty fails by an error that is not tried again."""
    url = "sim://?latency=constant(1ms)&error=lock_timeout:0.02"
    facts = _point(bench.measure(*_course(url, bench.seconds(6, 3), {"concurrency": 8}))).facts
    read = facts["failed"] / (facts["failed"] + facts["committed"])
    yield Reading(figure="failed", unit="share", planted=0.02, read=read, relative=0.15)


_LIMIT_MS = 60.0


def _failed_latency(bench: Bench) -> Iterator[Reading]:
    """Expect of a uniform law from 10 to 110 ms under a limit of 60 ms that half fails, and is in no other latency.

    Who is committed took from 10 to 60 ms. A statement that is given up is seen to its end, which ``sim`` does not
    bring forward: who fails took from 60 to 110 ms.
    """
    system, course = _course("sim://?latency=uniform(10ms,110ms)", bench.seconds(10, 5), {"rate": 200})
    load = {"interval": "100ms", "statement_timeout": f"{_LIMIT_MS:g}ms"}
    facts = _point(bench.measure(system, course, load=load)).facts
    committed, failed = facts["latency_ms"]["p50"], facts["failed_latency_ms"]["p50"]
    middle_ms = (10.0 + _LIMIT_MS) / 2
    yield Reading(figure="p50 of committed", unit="ms", planted=middle_ms, read=committed, relative=0.10)
    middle_ms = (_LIMIT_MS + 110.0) / 2
    yield Reading(figure="p50 of failed", unit="ms", planted=middle_ms, read=failed, relative=0.10)


_OVERLOAD, _SERVED, _SESSIONS = 1600.0, 800.0, 64
_BEHIND = "the system did not keep up"


def _is_bound(point: Mapping[str, Any]) -> bool:
    return "p99" in point["latency_ms"]["at_least"]


def _overload(bench: Bench) -> Iterator[Reading]:
    """Expect of twice the rate that is served a backlog that grows by the other half.

    Who arrives after the middle of the phase is not served in it: p99 is at least 99 % of half its length.
    """
    seconds = bench.seconds(6, 3)
    url = f"{_CONSTANT}&capacity=4"
    system, course = _course(url, 1.0, {"rate": _SERVED / 2})
    course["phases"].append({"name": "overload", "duration": seconds, "rate": _OVERLOAD})
    measured = bench.measure(system, course)
    points = measured.scores["points"]
    over = points[-1]
    rows = measured.run.system_metrics.to_pylist()
    waiting = [row for row in rows if row["metric"] == "backlog" and row["time_s"] > 1.0 + seconds / 4]
    first, last = waiting[0], waiting[round(seconds / 2 / 0.1)]
    growth = (last["value"] - first["value"]) / (last["time_s"] - first["time_s"])
    more = _OVERLOAD - _SERVED
    yield Reading(figure="growth of the backlog", unit="1/s", planted=more, read=growth, relative=0.03)
    left = more * seconds - _SESSIONS
    yield Reading(figure="unstarted arrivals", planted=left, read=over["unstarted"], relative=0.03)
    p99_ms = 0.99 * seconds / 2 * 1000
    yield Reading(
        figure="p99, at least", unit="ms", planted=p99_ms, read=over["latency_ms"]["p99"], relative=0.03
    )
    bounds = [
        phase["name"] for phase, point in zip(course["phases"], points, strict=True) if _is_bound(point)
    ]
    yield Reading(figure="p99 is a bound in", planted="overload", read=", ".join(bounds) or "none")
    told = [entry["detail"] for entry in measured.scores["verdicts"] if entry["verdict"] == _BEHIND]
    told_of = re.findall(r"at ([0-9.]+)/s", "".join(told))
    yield Reading(figure="did not keep up at", planted="1600/s", read=f"{', '.join(told_of) or 'none'}/s")


_PLACES, _FEW, _MANY = 5, 4, 12


def _refused(bench: Bench) -> Iterator[Reading]:
    """Expect of a server with five places that a phase of four sessions counts, and one of twelve does not."""
    system, course = _course(f"{_CONSTANT}&connections={_PLACES}", 1.0, {"concurrency": _FEW})
    more = {"duration": bench.seconds(3, 1.5), "mix": "SELECT", "concurrency": _MANY}
    course["phases"] += [{**more, "kind": "warm_up"}, more]
    scores = bench.measure(system, course).scores
    (shortfall,) = scores["shortfalls"]
    yield Reading(figure="sessions connected", planted=_PLACES, read=shortfall["connected"])
    yield Reading(figure="of", planted=_MANY, read=shortfall["wanted"])
    yield Reading(figure="phases that count", planted=1, read=len(scores["points"]))
    yield from _told(scores)


def _stopped(bench: Bench) -> Iterator[Reading]:
    """Expect of a server that is gone for good in the middle of a phase that the phase is no point."""
    half = bench.seconds(2, 1)
    url = f"{_CONSTANT}&outage={half:g}s%2B3600s"
    scores = bench.measure(*_course(url, 2 * half, {"concurrency": _FEW})).scores
    yield Reading(figure="phases that count", planted=0, read=len(scores["points"]))
    yield from _told(scores)


def _told(scores: Mapping[str, Any]) -> Iterator[Reading]:
    """Expect the verdict, with the words of the server that refuses."""
    told = {entry["verdict"]: entry["detail"] for entry in scores["verdicts"]}
    words = "(planted" in told.get("sessions were not connected", "")
    yield Reading(figure="sessions were not connected", planted="yes", read="yes" if words else "not told")


# --- the client ---------------------------------------------------------------------------------------------------

_SLOW = """
local slow = workload "slow"
slow:describe "computes for milliseconds before it asks for anything"
slow:table("things", { rows = function(scale) return 1000 * scale end, columns = { { "id", serial() } } })
slow:transaction("slow", { read_only = true, help = "computes, then asks" }, function(tx, pick)
  local sum = 0
  for number = 1, 1000000 do sum = sum + number end
  tx:one("thing", pick.things())
end)
slow:mix("SELECT", { slow = 1 })
"""
_SLOW_SQL = """
-- name: thing
SELECT id FROM things WHERE id = :id
"""


def _verdict(url: str, bench: Bench, planted: str, workload: str = "tpcb") -> Iterator[Reading]:
    """Expect a verdict on whether the client was the limit of eight sessions on one thread."""
    measured = bench.measure(
        *_course(url, bench.seconds(3, 2), {"concurrency": 8}), workload={"name": workload}
    )
    verdicts = {entry["verdict"] for entry in measured.scores["verdicts"]}
    words = {"yes": "the client was the limit", "no": "the client was not the limit"}
    read = next((word for word, verdict in words.items() if verdict in verdicts), "not told")
    yield Reading(figure="the client was the limit", planted=planted, read=read)


def _slow_client(bench: Bench) -> Iterator[Reading]:
    """Expect that a client which computes for longer than the system serves is told to be the limit."""
    yield from _verdict(_CONSTANT, bench, "yes", str(_slow_workload(bench.folder)))


def _slow_workload(folder: Path) -> Path:
    place = folder / "slow"
    place.mkdir(exist_ok=True)
    for name, text in (("workload.lua", _SLOW), ("statements.sql", _SLOW_SQL)):
        (place / name).write_text(text, encoding="utf-8")
    return place


CASES = (
    Case("load", "constant latency", _constant),
    Case("load", "exponential latency", _exponential),
    Case("load", "capacity", _capacity),
    Case("load", "stall under a rate", _stall),
    Case("load", "constant rate", _rate),
    Case("load", "error rate", _errors),
    Case("load", "latency of failures", _failed_latency),
    Case("load", "refused sessions", _refused),
    Case("load", "a server that stops in a phase", _stopped),
    Case("load", "overload", _overload),
    Case("load", "a client that is too slow", _slow_client),
    Case("load", "a saturated client", partial(_verdict, "noop://", planted="yes")),
    Case("load", "a client at ease", partial(_verdict, _CONSTANT, planted="no")),
)
