"""All cases, and how they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.calibration import (
    availability,
    consistency,
    durability,
    elasticity,
    failover,
    isolation,
    lag,
    load,
    metastability,
    scaleout,
    serverless,
    slo,
    sweep,
    tenancy,
    throughput,
)
from nephoscope.calibration.base import Bench, Case, Reading, Result, Stillness
from nephoscope.errors import InputError, NephoscopeError
from nephoscope.interrupts import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CASES: tuple[Case, ...] = (
    *load.CASES,
    *throughput.CASES,
    *lag.CASES,
    *consistency.CASES,
    *isolation.CASES,
    *failover.CASES,
    *durability.CASES,
    *availability.CASES,
    *elasticity.CASES,
    *serverless.CASES,
    *tenancy.CASES,
    *scaleout.CASES,
    *sweep.CASES,
    *slo.CASES,
    *metastability.CASES,
)

ATTEMPTS = 3
STILL_S = 0.05
"""A machine that did not let this process run for longer than this may have spoilt a reading."""


def cases_of(evaluator: str | None = None, *, short: bool = False) -> tuple[Case, ...]:
    """List the cases of an evaluator, or all, or those of the short form. Raises ``InputError`` for a wrong name."""
    names = tuple(dict.fromkeys(case.evaluator for case in CASES))
    if evaluator is not None and evaluator not in names:
        raise InputError(f"calibrate: {evaluator!r} has no cases; allowed are {', '.join(names)}")
    return tuple(
        case for case in CASES if evaluator in (None, case.evaluator) and (case.in_short or not short)
    )


def calibrate(cases: Sequence[Case], tell: Callable[[str], None], *, short: bool = False) -> list[Result]:
    """Run cases one after the other; tell what is done meanwhile."""
    results = []
    with Bench(short=short) as bench:
        for case in cases:
            tell(f"{case} …")
            results.append(run_case(case, bench))
    return results


def run_case(case: Case, bench: Bench) -> Result:
    """Run a case, and twice more at most where it misses and its run says itself that it was disturbed."""
    result = _attempt(case, bench, 1)
    while not result.holds and result.attempts < ATTEMPTS and _was_disturbed(result):
        result = _attempt(case, bench, result.attempts + 1)
    return result


def _attempt(case: Case, bench: Bench, number: int) -> Result:
    bench.starved = None
    with Stillness() as stillness:
        try:
            with time_limit(case.limit_s):
                readings = tuple(case.read(bench))
        except NephoscopeError as error:
            return Result(case, not_run=str(error), attempts=number)
    return Result(case, readings, still_s=stillness.longest_s, starved=bench.starved, attempts=number)


def _was_disturbed(result: Result) -> bool:
    """Tell whether the machine stood still, or a reading that misses says itself that it may be that far off."""
    is_still = result.still_s > STILL_S or result.starved is not None
    return is_still or any(map(_is_unsure, _missed(result.readings)))


def _missed(readings: Iterable[Reading]) -> list[Reading]:
    return [reading for reading in readings if not reading.holds]


def _is_unsure(reading: Reading) -> bool:
    return reading.stated is not None and reading.allowed is not None and reading.stated > reading.allowed


def complaint(results: Iterable[Result]) -> str:
    """Say what is wrong: what was planted and not read, and what could not be run, which is no pass."""
    bad = [result for result in results if not result.holds]
    not_run = sum(result.not_run is not None for result in bad)
    parts = []
    if missed := len(bad) - not_run:
        cases = "case: what was planted was" if missed == 1 else "cases: what was planted was"
        parts.append(f"{missed} {cases} not read; is the machine busy?")
    if not_run:
        parts.append(f"{not_run} {'case' if not_run == 1 else 'cases'} could not be run, which is no pass")
    return "; ".join(parts)
