"""The search for the highest rate that holds: bracket it, narrow the bracket, confirm its lower end.

Rates near the result may be uncertain. So the search then moves outwards until both ends of an interval are certain.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nephoscope.settings.rates import RateSearchSettings

    Interval = tuple[float | None, float | None]
    """A rate that holds for certain, and one that does not; None where none is known."""

MOST_STEPS = 60
"""A system whose confirmations fail again and again is given up after so many steps."""
_DOUBLINGS = 6
"""About so many steps bracket the rate; known only afterwards."""
_CONFIRMATIONS = 2
"""So many rates are confirmed, about: the first one often holds by chance."""
_OUTWARDS = math.sqrt(2)
"""The ratio of a step towards a certain end."""
_DIGITS = 5
"""Significant digits of a rate: far finer than the finest precision."""


@dataclass(frozen=True, kw_only=True)
class SearchBounds:
    """The bounds of a search; rates are in arrivals per second."""

    start: float
    least: float
    most: float
    precision: float
    """The bracket is narrow enough at a ratio of 1 + ``precision``."""
    repetitions: int
    """How many steps in a row confirm a rate."""

    @classmethod
    def of(cls, settings: RateSearchSettings, repetitions: int) -> SearchBounds:
        """Take them from a study's settings."""
        return cls(
            start=settings.start,
            least=settings.least,
            most=settings.most,
            precision=settings.precision,
            repetitions=repetitions,
        )


@dataclass(frozen=True)
class Bracketed:
    """The result of a search."""

    rate: float | None
    """The highest rate that held and was confirmed; None if there is none."""
    beyond: float | None
    """The lowest rate that did not hold; None if each did."""


def typical_steps(precision: float, repetitions: int) -> int:
    """Return about how many steps a search has; known only afterwards."""
    narrowing = math.ceil(math.log2(math.log(2) / math.log1p(precision)))
    return _DOUBLINGS + narrowing + _CONFIRMATIONS * repetitions


class _OutOfStepsError(Exception):
    """The search has taken its last step."""


def highest_rate(
    bounds: SearchBounds, holds: Callable[[float, int], bool], certain: Callable[[], Interval]
) -> Bracketed:
    """Search for the highest rate that holds, in `MOST_STEPS` steps at the most.

    ``holds`` measures a rate; it takes the number of the confirming repetition, too, 0 for a step of the search.
    ``certain`` gives what is certain by all that was measured. In a system in which no rate holds above one that does
    not, ``beyond`` exceeds ``rate`` by the precision at the most.
    """
    search = _Search(bounds, holds)
    rate = None
    with contextlib.suppress(_OutOfStepsError):
        rate = search.run()
        search.make_certain(certain)
    return Bracketed(rate, search.failed)


class _Search:
    def __init__(self, bounds: SearchBounds, holds: Callable[[float, int], bool]) -> None:
        self._bounds = bounds
        self._holds = holds
        self._steps = 0
        self.held: list[float] = []
        """Rates that held, ascending, all of them below ``failed``."""
        self.failed: float | None = None

    def run(self) -> float | None:
        """Return the confirmed rate; None if no rate holds."""
        self._try(self._bounds.start)
        self._climb()
        self._descend()
        while self.held:
            self._narrow()
            if self._confirmed(self.held[-1]):
                return self.held[-1]
            self.failed = self.held.pop()
            self._descend()
        return None

    def make_certain(self, certain: Callable[[], Interval]) -> None:
        """Measure lower and higher rates until one holds for certain, and one does not."""
        rate = self.held[-1] if self.held else self._bounds.least
        while certain()[0] is None and rate > self._bounds.least:
            rate = max(_rounded(rate / _OUTWARDS), self._bounds.least)
            self._ask(rate, 0)
        rate = self._bounds.most if self.failed is None else self.failed
        while certain()[1] is None and rate < self._bounds.most:
            rate = min(_rounded(rate * _OUTWARDS), self._bounds.most)
            self._ask(rate, 0)

    def _ask(self, rate: float, repetition: int) -> bool:
        if self._steps == MOST_STEPS:
            raise _OutOfStepsError
        self._steps += 1
        return self._holds(rate, repetition)

    def _try(self, rate: float) -> None:
        if self._ask(rate, 0):
            self.held.append(rate)
        else:
            self.failed = rate

    def _climb(self) -> None:
        """Double the rate until it does not hold, or the highest one holds."""
        while self.failed is None and self.held[-1] < self._bounds.most:
            self._try(min(_rounded(2 * self.held[-1]), self._bounds.most))

    def _descend(self) -> None:
        """Halve the rate until it holds, or the lowest one does not hold."""
        while not self.held and self.failed is not None and self.failed > self._bounds.least:
            self._try(max(_rounded(self.failed / 2), self._bounds.least))

    def _narrow(self) -> None:
        """Try the geometric mean of the bracket's ends until their ratio is small enough."""
        while self.failed is not None and self.failed / self.held[-1] > 1 + self._bounds.precision:
            self._try(_rounded(math.sqrt(self.held[-1] * self.failed)))

    def _confirmed(self, rate: float) -> bool:
        return all(self._ask(rate, repetition) for repetition in range(1, self._bounds.repetitions + 1))


def _rounded(rate: float) -> float:
    return float(f"{rate:.{_DIGITS}g}")
