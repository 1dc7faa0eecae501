"""The evaluator ``failover``: outages of a known length before a real PostgreSQL; a throughput that comes back late."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.calibration.base import Case, Reading
from nephoscope.calibration.planted import Planted
from nephoscope.errors import MeasurementError
from nephoscope.systems.base import Action, Done

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.calibration.base import Bench, Measured
    from nephoscope.systems.embedded_postgres import EmbeddedPostgres
    from nephoscope.systems.sim import Sim

_PROBE_RATE = 200.0
_F_S = 0.010 + 1 / _PROBE_RATE
"""F is read within 10 ms, and the time between two probes."""
_PATIENCE_S = 5.0


def failure(
    bench: Bench,
    *,
    fault: str,
    lasts_s: float,
    **settings: Any,  # noqa: ANN401 - keys of the evaluator's table
) -> dict[str, Any]:
    """Describe a failure under a small load, watched for long enough."""
    return {
        "evaluator": "failover",
        "fault": fault,
        "mix": "SELECT",
        "concurrency": 1,
        "repetitions": 1,
        "warmup": 0.5,
        "before": bench.seconds(2, 1),
        "after": lasts_s + bench.seconds(4, 2.5),
        "probe_rate": _PROBE_RATE,
        **settings,
    }


def only_failure(measured: Measured) -> Mapping[str, Any]:
    """Give what is told of the only failure of a run. Raises ``MeasurementError`` where F is absent."""
    (found,) = measured.score("F")["detail"]["failures"]
    told: Mapping[str, Any] = found
    return told


def _f_of(measured: Measured) -> tuple[float | str, float]:
    """Read F, or ``none`` where no interruption was seen, and what it is known to."""
    found = only_failure(measured)
    if not found["interrupted"]:
        return "none", found["resolution_s"]
    return found["service_back_s"] - found["injected_s"], found["resolution_s"]


# --- F --------------------------------------------------------------------------------------------------------------


class _Outage:
    """Lets nobody reach the endpoint that takes writes, for a time that the proxy before it has on record."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.lasted_s = 0.0

    def __call__(self, inner: EmbeddedPostgres) -> Done:
        began = _engine.monotonic_ns()
        if self._seconds:
            (proxy,) = inner.front("rw")
            began = proxy.set('{"accept": "refuse"}')
            over = {"at_ns": began + round(self._seconds * 1e9), "faults": {}}
            proxy.schedule(json.dumps([over]))
            proxy.reset()
            self.lasted_s = (_taken_back(proxy) - began) / 1e9
        return Done(action=Action.RESTART, node=None, began_ns=began, ended_ns=_engine.monotonic_ns())


def _taken_back(proxy: _engine.FaultProxy) -> int:
    """Wait until the proxy has nothing planted any more; tell when that was. Raises ``MeasurementError``."""
    limit = time.monotonic() + _PATIENCE_S + 60.0
    while time.monotonic() < limit:
        for event in reversed(json.loads(proxy.events())):
            if event["what"] == "faults" and event.get("planned_ns") is not None:
                return int(event["at_ns"])
        time.sleep(0.02)
    raise MeasurementError("the fault proxy has not kept its schedule")


def _outage(bench: Bench, seconds: float) -> Iterator[Reading]:
    """Expect F of an endpoint that nobody could reach; where everybody could, that there was no interruption."""
    planted = _Outage(seconds)
    measured = bench.measure(
        bench.postgres(front=True),
        failure(bench, fault="restart", lasts_s=seconds),
        provider=lambda inner: Planted(inner, {Action.RESTART: planted}),
    )
    read, resolution_s = _f_of(measured)
    yield Reading(
        figure="F",
        unit="s",
        planted=planted.lasted_s if seconds else "none",
        read=read,
        absolute=_F_S,
        stated=resolution_s,
    )


_PAUSE_S = 2.0


def _stopped(bench: Bench) -> Iterator[Reading]:
    """Expect F of a server whose processes have got SIGSTOP, and SIGCONT 2 s later."""
    measured = bench.measure(
        bench.postgres(), failure(bench, fault="pause", lasts_s=_PAUSE_S, pause=_PAUSE_S)
    )
    events = {
        event.get("action"): event for event in measured.run.events if event["event"] in ("fault", "action")
    }
    resumed = events["resume"]
    planted = resumed["time_s"] + resumed["took_s"] - events["pause"]["time_s"]
    read, resolution_s = _f_of(measured)
    yield Reading(figure="F", unit="s", planted=planted, read=read, absolute=_F_S, stated=resolution_s)


# --- R --------------------------------------------------------------------------------------------------------------

_AWAY_S, _HALF_S = 0.5, 4.0
_INTERVAL_S = 0.1


def _plant_half(inner: Sim) -> Done:
    """Let the system be away, and then serve half as many at a time for a while."""
    (url,) = inner.endpoints("rw")
    whole_again = f"{round((_AWAY_S + _HALF_S) * 1000)}ms"
    began = _engine.sim_plant(url, f"outage=0s%2B{round(_AWAY_S * 1000)}ms&capacity=2,{whole_again}:4")
    return Done(action=Action.RESTART, node="rw", began_ns=began, ended_ns=_engine.monotonic_ns())


def _half(bench: Bench) -> Iterator[Reading]:
    """Expect that the throughput is back 4 s after the service: till then it is half of what it was."""
    measured = bench.measure(
        {"provider": "sim", "plan": "latency=constant(2ms)&capacity=4"},
        # Ten for each place: who comes late leaves none empty, and a probe that has to wait is not late.
        failure(bench, fault="restart", lasts_s=_AWAY_S + _HALF_S + 1.0, concurrency=40, probe_rate=50.0),
        provider=lambda inner: Planted(inner, {Action.RESTART: _plant_half}),
        load={"interval": f"{round(_INTERVAL_S * 1000)}ms"},
    )
    yield Reading(
        figure="R",
        unit="s",
        planted=_HALF_S,
        read=measured.score("R")["value"],
        absolute=_INTERVAL_S,
        stated=_INTERVAL_S,
    )


CASES = (
    *(
        Case(
            "failover",
            f"an outage of {seconds:g} s on the way" if seconds else "no outage",
            partial(_outage, seconds=seconds),
            in_short=seconds <= 1,
        )
        for seconds in (0.0, 0.2, 1.0, 5.0)
    ),
    Case("failover", "a server stopped for 2 s (SIGSTOP)", _stopped),
    Case("failover", "half the throughput for 4 s after", _half),
)
