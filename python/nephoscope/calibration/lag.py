"""The evaluator ``lag``: planted lags, of simulated replicas and of a real one."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nephoscope import _engine
from nephoscope.calibration.base import Case, Reading
from nephoscope.calibration.planted import Planted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nephoscope.calibration.base import Bench, Measured
    from nephoscope.systems.base import Provider, System

_PATIENCE_S = 15.0

_LAWS = {
    "0 ms": ("constant(0ms)", 0.0),
    "0.3 ms": ("constant(300us)", 0.3),
    "5 ms": ("constant(5ms)", 5.0),
    "50 ms": ("constant(50ms)", 50.0),
    "2 or 4 ms": ("bimodal(2ms,4ms,0.25)", 2.5),
}
"""Laws and their means, in milliseconds. The two times of the last are near to each other, so that the mean of some
hundred markers is that of the law to within a hundredth."""


def _idle(seconds: float, interval_ms: float) -> dict[str, Any]:
    """Measure the lag of an idle system."""
    return {
        "evaluator": "lag",
        "loads": [{"name": "idle"}],
        "warmup": 0.3,
        "duration": seconds,
        "repetitions": 1,
        "marker_interval": interval_ms / 1000,
    }


def _kinds(measured: Measured) -> list[Mapping[str, Any]]:
    """Give the summaries of inserts, updates and deletes."""
    return list(measured.score("C")["detail"]["lag_ms"]["idle"].values())


def _mean(kinds: list[Mapping[str, Any]], figure: str) -> float:
    """Average a figure over the kinds, by their markers."""
    return float(sum(kind[figure] * kind["count"] for kind in kinds) / sum(kind["count"] for kind in kinds))


def _unaccounted(measured: Measured, kinds: list[Mapping[str, Any]]) -> int:
    """Count markers that were made and have no sample, and samples of the measured time that the summary lacks."""
    rows = [row for row in measured.run.probes.to_pylist() if row["probe"] == "lag"]
    numbers = {row["number"] for row in rows}
    (phase,) = (phase for phase in measured.run.phases if phase.kind == "measure")
    inside = [row for row in rows if phase.start_s <= row["time_s"] <= phase.end_s]
    counted = sum(int(kind["count"]) for kind in kinds)
    return int(max(numbers)) + 1 - len(numbers) + len(inside) - counted


def _simulated(bench: Bench, law: str, mean_ms: float) -> Iterator[Reading]:
    """Expect the mean of a law within 100 µs or 2 %, and that every marker counts."""
    name, quick = bench.name(), "latency=constant(20us)"
    # Replicas of one law, each with draws of its own.
    replicas = [f"sim://{name}?{quick}&lag={law}&seed={seed}" for seed in (1, 2)]
    measured = bench.measure(
        {"provider": "url", "rw": f"sim://{name}?{quick}", "ro": replicas}, _idle(bench.seconds(5, 2.5), 2)
    )
    kinds = _kinds(measured)
    yield Reading(
        figure="mean",
        unit="ms",
        planted=mean_ms,
        read=_mean(kinds, "mean"),
        relative=0.02,
        absolute=0.1,
        stated=_mean(kinds, "half_width_mean"),
    )
    yield Reading(figure="markers dropped", planted=0, read=_unaccounted(measured, kinds))


def _later(bench: Bench, measure: Callable[[int, Mapping[str, Any]], Measured]) -> Iterator[Reading]:
    """Expect the lag of a real replica to grow by the delay that is planted."""
    idle = _idle(bench.seconds(5, 3), 10)
    kinds = {
        delay_ms: _kinds(measure(delay_ms, idle)) for delay_ms in ((0, 100) if bench.short else (0, 20, 100))
    }
    own_ms = _mean(kinds.pop(0), "p50")
    for delay_ms, of in kinds.items():
        yield Reading(
            figure=f"p50, {delay_ms} ms later",
            unit="ms",
            planted=delay_ms + own_ms,
            read=_mean(of, "p50"),
            absolute=2.0,
            stated=_mean(of, "half_width_p50"),
        )


def _delayed(bench: Bench) -> Iterator[Reading]:
    """Plant the delay in PostgreSQL, which applies each commit so much later."""
    return _later(
        bench,
        lambda delay_ms, idle: bench.measure(
            bench.embedded("postgres", replicas=1, replica_delay=f"{delay_ms}ms"), idle
        ),
    )


class _Detour(Planted):
    """Has a MariaDB replica get its primary's log by a proxy that holds it back."""

    def __init__(self, inner: Provider, delay_ms: int) -> None:
        super().__init__(inner, {})
        self._delay = {"to_client": {"delay": {"law": "constant", "ms": delay_ms}}}
        self._proxy: _engine.FaultProxy | None = None

    def start(self) -> System:
        """Start the provider within, and lead its replica to the proxy."""
        system = super().start()
        self._proxy = proxy = _engine.FaultProxy(urlsplit(system.rw[0]).netloc.rpartition("@")[2])
        proxy.set(json.dumps(self._delay))
        host, _, port = proxy.address.rpartition(":")
        admin = _engine.Admin(system.ro[0], answer_timeout_s=_PATIENCE_S)
        try:
            admin.query(
                f"STOP SLAVE; CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}; START SLAVE"
            )
        finally:
            admin.close()
        return system

    def stop(self) -> None:
        """Stop the provider within, and end the proxy."""
        try:
            super().stop()
        finally:
            if self._proxy is not None:
                self._proxy.close()


def _far(bench: Bench) -> Iterator[Reading]:
    """Plant the delay on the way from a MariaDB primary to its replica: its own setting knows whole seconds alone."""
    return _later(
        bench,
        lambda delay_ms, idle: bench.measure(
            bench.embedded("mariadb", replicas=1), idle, provider=partial(_Detour, delay_ms=delay_ms)
        ),
    )


_EVERY_S, _STALL_S, _BASE_MS = 3.0, 0.5, 1.3


def _stalled(bench: Bench) -> Iterator[Reading]:
    """Expect the mean over time of a replica that applies nothing for a sixth of it."""
    name, quick = bench.name(), "latency=constant(20us)"
    seconds = bench.seconds(15, 6)
    begins = [0.5 + _EVERY_S * place for place in range(10)]
    stalls = "".join(f"&lag_stall={begin}s%2B{_STALL_S}s" for begin in begins)
    replica = f"sim://{name}?{quick}&lag=constant({_BASE_MS}ms){stalls}"
    measured = bench.measure(
        {"provider": "url", "rw": f"sim://{name}?{quick}", "ro": [replica]}, _idle(seconds, 5)
    )
    (phase,) = (phase for phase in measured.run.phases if phase.kind == "measure")
    kinds = _kinds(measured)
    # Of a commit within a stall the rest of the stall is left, besides the lag before it.
    within = [
        (max(0.0, begin + _STALL_S - max(begin, phase.start_s)), max(0.0, begin + _STALL_S - phase.end_s))
        for begin in begins
        if begin < phase.end_s
    ]
    waited_s2 = sum(first**2 - last**2 for first, last in within) / 2
    ends = measured.score("C")["ci95"]
    yield Reading(
        figure="mean",
        unit="ms",
        planted=waited_s2 / (phase.end_s - phase.start_s) * 1000 + _BASE_MS,
        read=_mean(kinds, "mean"),
        relative=0.03,
        absolute=1.0,
        # C adds up three kinds, in seconds.
        stated=None if ends is None else (ends[1] - ends[0]) / 2 / len(kinds) * 1000,
    )
    yield Reading(figure="markers dropped", planted=0, read=_unaccounted(measured, kinds))


CASES = (
    *(
        Case("lag", f"{name} on sim", partial(_simulated, law=law, mean_ms=mean_ms))
        for name, (law, mean_ms) in _LAWS.items()
    ),
    Case("lag", "stalls of a replica on sim", _stalled),
    Case("lag", "a delayed replica of PostgreSQL", _delayed, 240.0),
    Case("lag", "a replica of MariaDB on a long way", _far, 240.0),
)
