"""The short form of ``nephoscope calibrate``: every case, on this machine; and what becomes of cases that miss."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import users_of, wait_until_gone

from nephoscope.calibration import CASES, Bench, Case, Reading, Result, cases_of, complaint, run_case
from nephoscope.calibration.cases import STILL_S
from nephoscope.calibration.lag import _Detour
from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.sim import Sim, SimSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _pytest.mark import ParameterSet

    from nephoscope.systems.base import System

pytestmark = pytest.mark.light

_TAKES_A_PROCESSOR = re.compile("PostgreSQL|MariaDB|SIGSTOP|too slow|saturated")
"""What is in the name of a case that takes more than half of a processor, be it for a server or for the client."""


def _cases() -> Iterator[ParameterSet]:
    for case in cases_of(short=True):
        marks = [pytest.mark.alone] if _TAKES_A_PROCESSOR.search(str(case)) else []
        yield pytest.param(case, id=str(case), marks=marks)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(short=True) as bench:
        yield bench
        wait_until_gone(users_of(bench.folder))
    assert not bench.folder.exists()


@pytest.mark.parametrize("case", list(_cases()))
def test_what_is_planted_is_read(case: Case, bench: Bench) -> None:
    result = run_case(case, bench)
    assert result.not_run is None
    assert result.readings
    for reading in result.readings:
        # A machine that is busy each time may spoil a reading. What it says of itself has to be true then.
        unsure = result.attempts > 1 and (reading.stated or 0.0) > (reading.allowed or 0.0)
        assert reading.holds or (unsure and _is_as_wrong_as_it_says(reading)), reading


def _is_as_wrong_as_it_says(reading: Reading) -> bool:
    return reading.error is not None and abs(reading.error) <= (reading.stated or 0) + (reading.allowed or 0)


class _Failing(Sim):
    """Neither starts nor stops."""

    def start(self) -> System:
        raise MeasurementError("there is no server")

    def stop(self) -> None:
        raise MeasurementError("it goes on")


class _Closed:
    def __init__(self) -> None:
        self.times = 0

    def close(self) -> None:
        self.times += 1


def test_a_detour_that_did_not_begin_says_why_and_one_that_did_is_closed_whatever_happens() -> None:
    provider = _Detour(_Failing(SimSettings()), 10)
    with pytest.raises(MeasurementError, match="it goes on") as raised, provider:
        provider.start()
    assert str(raised.value.__context__) == "there is no server"
    proxy: Any = _Closed()
    provider._proxy = proxy
    with pytest.raises(MeasurementError, match="it goes on"):
        provider.stop()
    assert proxy.times == 1


# --- readings


@pytest.mark.parametrize(
    ("read", "relative", "absolute", "holds"),
    [
        (103.0, 0.03, 0.0, True),
        (103.1, 0.03, 0.0, False),
        (96.9, 0.03, 0.0, False),
        (103.1, 0.03, 4.0, True),
        (100.0, 0.0, 0.0, True),
        (100.1, 0.0, 0.0, False),
        ("none", 0.03, 0.0, False),
    ],
)
def test_a_reading_holds_within_the_larger_of_its_tolerances(
    read: float | str, relative: float, absolute: float, *, holds: bool
) -> None:
    assert Reading(figure="x", planted=100.0, read=read, relative=relative, absolute=absolute).holds is holds


def test_none_reads_as_none_and_not_as_a_number() -> None:
    assert Reading(figure="F", planted="none", read="none").holds
    assert not Reading(figure="F", planted="none", read=0.0, absolute=1.0).holds


# --- cases that miss

GOOD = Reading(figure="x", planted=1.0, read=1.0)
BAD = Reading(figure="x", planted=1.0, read=2.0)
UNSURE = Reading(figure="x", planted=1.0, read=2.0, absolute=0.1, stated=0.5)


def reading(*readings: Reading, stands_still: bool = False) -> Callable[[Bench], Iterator[Reading]]:
    """A case that reads these, one after the other, one each time it is run."""
    left = list(readings)

    def read(_bench: Bench) -> Iterator[Reading]:
        if stands_still:
            _stand_still()
        yield left.pop(0)

    return read


def _stand_still() -> None:
    """Keep every other thread of this process from running, as a machine that is taken away does."""
    # One call that keeps the interpreter to itself; doubled until it has lasted.
    size, began = 1 << 20, time.monotonic()
    while time.monotonic() - began < 4 * STILL_S:
        sum(range(size))
        size *= 2


@pytest.mark.parametrize(
    ("first", "attempts"),
    [(reading(GOOD, BAD), 1), (reading(BAD, GOOD), 1), (reading(UNSURE, GOOD), 2)],
    ids=["holds", "misses", "says that it is not sure"],
)
def test_only_what_says_itself_that_it_was_disturbed_is_tried_again(
    first: Callable[[Bench], Iterator[Reading]], attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nephoscope.calibration.cases.STILL_S", 60.0)
    assert run_case(Case("load", "made up", first), Bench()).attempts == attempts


def test_a_machine_that_stood_still_has_a_third_attempt_and_no_fourth() -> None:
    result = run_case(Case("load", "made up", reading(BAD, BAD, BAD, GOOD, stands_still=True)), Bench())
    assert result.still_s > STILL_S
    assert (result.attempts, result.holds) == (3, False)


def test_a_run_whose_load_had_no_processor_is_made_again() -> None:
    def read(bench: Bench) -> Iterator[Reading]:
        bench.starved = "no processor" if bench.starved is None and not attempts else None
        attempts.append(bench.starved)
        yield GOOD if len(attempts) > 1 else BAD

    attempts: list[str | None] = []
    result = run_case(Case("load", "made up", read), Bench())
    assert (result.attempts, result.holds, result.starved) == (2, True, None)


def test_what_cannot_be_run_is_no_pass() -> None:
    def read(_bench: Bench) -> Iterator[Reading]:
        yield GOOD
        raise MeasurementError("there is no PostgreSQL here")

    result = run_case(Case("lag", "made up", read), Bench())
    assert (result.holds, result.not_run) == (False, "there is no PostgreSQL here")
    assert complaint([result]) == "1 case could not be run, which is no pass"


def test_a_case_ends_within_its_limit() -> None:
    def read(_bench: Bench) -> Iterator[Reading]:
        yield GOOD
        time.sleep(60)

    began = time.monotonic()
    result = run_case(Case("lag", "made up", read, limit_s=0.2), Bench())
    assert time.monotonic() - began < 30
    assert result.not_run == "it did not end within 0.2 s"


def test_a_run_that_does_not_end_is_interrupted() -> None:
    def read(bench: Bench) -> Iterator[Reading]:
        phase = {"name": "long", "duration": 600, "mix": "SELECT", "concurrency": 1}
        bench.measure({"provider": "url", "rw": "sim://"}, {"evaluator": "load", "phases": [phase]})
        yield GOOD

    began = time.monotonic()
    with Bench() as bench:
        result = run_case(Case("load", "made up", read, limit_s=1.0), bench)
    assert time.monotonic() - began < 60
    assert result.not_run == "it did not end within 1 s"


def test_cases_are_chosen_by_their_evaluator() -> None:
    assert cases_of() == CASES
    assert {case.evaluator for case in cases_of("lag")} == {"lag"}
    assert {case.evaluator for case in cases_of(short=True)} == {case.evaluator for case in CASES}
    assert len(CASES) == len({str(case) for case in CASES})
    with pytest.raises(InputError, match=r"'scaleup' has no cases; allowed are load, throughput, lag, "):
        cases_of("scaleup")


def test_a_complaint_counts_what_missed() -> None:
    missed = Result(CASES[0], (GOOD, BAD))
    assert complaint([missed, missed]).startswith("2 cases: what was planted was not read")
