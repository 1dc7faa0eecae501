"""The evaluator ``failover``: outages of a known length before a real PostgreSQL; a throughput that comes back late."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.calibration.base import PRODUCTS, Case, Reading
from nephoscope.calibration.planted import Planted
from nephoscope.errors import MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.systems.base import Done

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nephoscope.calibration.base import Bench, Measured
    from nephoscope.systems.cluster.embedded import EmbeddedCluster
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

    def __call__(self, inner: EmbeddedCluster) -> Done:
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


def _outage(bench: Bench, product: str, seconds: float) -> Iterator[Reading]:
    """Expect F of an endpoint that nobody could reach; where everybody could, that there was no interruption."""
    planted = _Outage(seconds)
    measured = bench.measure(
        bench.embedded(product, front=True),
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
        bench.embedded("postgres"), failure(bench, fault="pause", lasts_s=_PAUSE_S, pause=_PAUSE_S)
    )
    events = {
        event.get("action"): event for event in measured.run.events if event["event"] in ("fault", "action")
    }
    resumed = events["resume"]
    planted = resumed["time_s"] + resumed["took_s"] - events["pause"]["time_s"]
    read, resolution_s = _f_of(measured)
    yield Reading(figure="F", unit="s", planted=planted, read=read, absolute=_F_S, stated=resolution_s)


_FIRST_S, _CALM_S, _SECOND_S = 0.5, 2.0, 1.5


def _plant_twice(inner: Sim) -> Done:
    """Let the system be away, and let it stand still for longer when it has served again for a while."""
    (url,) = inner.endpoints("rw")
    away, still = round(_FIRST_S * 1000), round(_SECOND_S * 1000)
    later = round((_FIRST_S + _CALM_S) * 1000)
    began = _engine.sim_plant(url, f"outage=0s%2B{away}ms&stall={later}ms%2B{still}ms")
    return Done(action=Action.RESTART, node="rw", began_ns=began, ended_ns=_engine.monotonic_ns())


def _twice(bench: Bench) -> Iterator[Reading]:
    """Expect F of the outage that the fault has caused, and the longer stall two seconds later by itself."""
    measured = bench.measure(
        {"provider": "sim", "plan": "latency=constant(2ms)"},
        failure(bench, fault="restart", lasts_s=_FIRST_S + _CALM_S + _SECOND_S),
        provider=lambda inner: Planted(inner, {Action.RESTART: _plant_twice}),
    )
    read, resolution_s = _f_of(measured)
    yield Reading(figure="F", unit="s", planted=_FIRST_S, read=read, absolute=_F_S, stated=resolution_s)
    later = only_failure(measured)["later"]
    yield Reading(figure="later interruptions", planted=1, read=len(later))
    lasted = later[0]["back_s"] - later[0]["began_s"] if later else "none"
    yield Reading(figure="the later one", unit="s", planted=_SECOND_S, read=lasted, absolute=_F_S)


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


_STILL_S = 3.0
_RATE, _SLOW_PROBES = 500.0, 50.0
_CAPACITY = 1000.0
"""Of 20 places, 20 ms each: the latency has to come back to within 5 %, which a late client must not be near."""
_WINDOW_S = 0.5
"""R is as fine as the evaluator's window."""


def _plant_backlog(rw: str, ro: str, _: object) -> Done:
    """Let the read-only node be away for a while, and let the node that has all of the load stand still for longer."""
    began = _engine.sim_plant(ro, f"outage=0s%2B{round(_AWAY_S * 1000)}ms")
    _engine.sim_plant(rw, f"stall=0s%2B{round(_STILL_S * 1000)}ms")
    return Done(action=Action.RESTART, node=None, began_ns=began, ended_ns=_engine.monotonic_ns())


def _backlog(bench: Bench) -> Iterator[Reading]:
    """Expect that a load at a rate is served as before when its backlog is gone, and not when the service is back."""
    rw = f"sim://{bench.name()}?latency=constant(20ms)&capacity=20"
    ro = f"{rw.partition('&')[0]}&lag=constant(0s)"
    # What the probes leave of the capacity works off the arrivals of the stall, and those that come meanwhile.
    left = _CAPACITY - _SLOW_PROBES
    drained_s = _STILL_S * left / (left - _RATE)
    measured = bench.measure(
        {"provider": "url", "rw": rw, "ro": ro},
        failure(bench, fault="restart", lasts_s=drained_s, roles="ro", rate=_RATE, probe_rate=_SLOW_PROBES),
        provider=lambda inner: Planted(inner, {Action.RESTART: partial(_plant_backlog, rw, ro)}),
        load={"interval": f"{round(_INTERVAL_S * 1000)}ms", "reads": "rw"},
    )
    yield Reading(
        figure="R",
        unit="s",
        planted=drained_s - _AWAY_S,
        read=measured.score("R")["value"],
        absolute=_WINDOW_S,
        stated=_WINDOW_S,
    )


CASES = (
    *(
        Case(
            "failover",
            f"an outage of {seconds:g} s on the way to {name}" if seconds else f"no outage of {name}",
            partial(_outage, product=product, seconds=seconds),
            in_short=seconds <= 1,
        )
        for product, name in PRODUCTS.items()
        for seconds in ((0.0, 0.2, 1.0, 5.0) if product == "postgres" else (1.0,))
    ),
    Case("failover", "a server stopped for 2 s (SIGSTOP)", _stopped),
    Case("failover", "a longer stall 2 s after the outage", _twice),
    Case("failover", "half the throughput for 4 s after", _half),
    Case("failover", "a backlog that drains at an open rate", _backlog),
)
