"""Calibration: the engine against a simulated database whose true answer is planted.

Each check plants something, measures it as any user would, computes the truth from the plan and not from the run,
and compares. It is run on the user's own machine, so what it says holds there: a machine that is too busy to keep
time fails here, and not in a purchase.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.live import Silence
from nephoscope.measure import run_study
from nephoscope.report import Selection
from nephoscope.store import StoredRun
from nephoscope.study import make_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS = 6.0


@dataclass(frozen=True)
class Reading:
    """A planted figure, and what was read."""

    check: str
    figure: str
    unit: str
    planted: float
    read: float
    tolerance: float
    """The largest relative error that is allowed."""

    @property
    def error(self) -> float:
        """The relative error."""
        return self.read / self.planted - 1 if self.planted else self.read

    @property
    def holds(self) -> bool:
        """Whether the error is within the tolerance."""
        return abs(self.error) <= self.tolerance


@dataclass(frozen=True)
class _Check:
    name: str
    planted: str
    """The query of the ``sim://`` URL."""
    phase: dict[str, Any]
    truth: Callable[[StoredRun, int], Iterator[Reading]]
    seconds: float = _SECONDS


def calibrate(tell: Callable[[str], None]) -> list[Reading]:
    """Run every check; tell what is done meanwhile."""
    readings = []
    with tempfile.TemporaryDirectory(prefix="nephoscope-calibrate-") as folder:
        for check in _CHECKS:
            tell(f"{check.name} …")
            readings += list(_run(check, Path(folder)))
    return readings


def _run(check: _Check, folder: Path) -> Iterator[Reading]:
    tables = {
        "study": {"name": "calibrate"},
        "system": {"provider": "url", "rw": f"sim://calibrate?{check.planted}"},
        "workload": {"name": "tpcb"},
        "load": {"interval": "250ms"},
        "measure": [
            {
                "evaluator": "load",
                "phases": [{"name": "all", "duration": check.seconds, "mix": "SELECT", **check.phase}],
            }
        ],
    }
    outcome = run_study(make_study(tables, "calibrate"), folder, Silence())
    run = StoredRun(outcome.folder)
    number = next(phase.number for phase in run.phases if phase.kind == "measure")
    yield from check.truth(run, number)


def _count(run: StoredRun, phase: int, column: str) -> int:
    table = run.intervals
    return int(table.column(column).to_numpy()[table.column("phase").to_numpy() == phase].sum())


def _tps(run: StoredRun, phase: int) -> float:
    whole = next(known for known in run.phases if known.number == phase)
    return _count(run, phase, "committed") / (whole.end_s - whole.start_s)


def _quantiles(run: StoredRun, phase: int) -> Callable[[float], float]:
    histogram = run.merged(Selection(phases=frozenset({phase})))
    return lambda share: histogram.quantile(share) / 1e6


def _constant(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect of a service time of 5 ms and 8 sessions 1,600 transactions a second, each of 5 ms."""
    yield Reading("constant latency", "TPS", "1/s", 1600.0, _tps(run, phase), 0.03)
    yield Reading("constant latency", "p50", "ms", 5.0, _quantiles(run, phase)(0.5), 0.03)


def _exponential(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect quantiles of an exponential law of mean 20 ms; of 4,000 draws the sample errs by some per cent."""
    quantile = _quantiles(run, phase)
    for share in (0.5, 0.9):
        planted = -20.0 * math.log(1 - share)
        yield Reading("exponential latency", f"p{share * 100:g}", "ms", planted, quantile(share), 0.10)


def _capacity(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect that four places of 5 ms each serve 800 a second, however many sessions ask."""
    yield Reading("capacity", "TPS", "1/s", 800.0, _tps(run, phase), 0.02)
    yield Reading("capacity", "p50", "ms", 20.0, _quantiles(run, phase)(0.5), 0.03)


_STALL_RATE, _STALL_AT, _STALL_S, _STALL_OF = 500, 2.0, 1.0, 6.0


def _stall(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect of a stall of 1 s at 500/s that whoever arrives in it waits for its end.

    Coordinated omission would hide that.

    Of the arrivals, a share of 1/6 falls into the stall; their waits are spread evenly from 0 to 1 s.
    """
    share = _STALL_S / _STALL_OF
    quantile = _quantiles(run, phase)
    for q in (0.9, 0.95, 0.99):
        planted = 1.0 + 1000.0 * _STALL_S * (1 - (1 - q) / share)
        yield Reading("stall under a rate", f"p{q * 100:g}", "ms", planted, quantile(q), 0.05)


def _rate(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect of a rate of 1,000/s a thousand arrivals in each second, all of them served."""
    yield Reading("constant rate", "TPS", "1/s", 1000.0, _tps(run, phase), 0.002)


def _errors(run: StoredRun, phase: int) -> Iterator[Reading]:
    """Expect that one in fifty fails by an error that is not tried again."""
    failed = _count(run, phase, "failed")
    yield Reading(
        "error rate", "failed", "share", 0.02, failed / (failed + _count(run, phase, "committed")), 0.15
    )


_CHECKS = (
    _Check("constant latency", "latency=constant(5ms)", {"concurrency": 8}, _constant),
    _Check("exponential latency", "latency=exponential(20ms)", {"rate": 400}, _exponential, 10.0),
    _Check("capacity", "latency=constant(5ms)&capacity=4", {"concurrency": 16}, _capacity),
    _Check(
        "stall under a rate",
        f"latency=constant(1ms)&stall={_STALL_AT:g}s%2B{_STALL_S:g}s",
        {"rate": _STALL_RATE},
        _stall,
        _STALL_OF,
    ),
    _Check("constant rate", "latency=constant(1ms)", {"rate": 1000}, _rate),
    _Check("error rate", "latency=constant(1ms)&error=lock_timeout:0.02", {"concurrency": 8}, _errors),
)
