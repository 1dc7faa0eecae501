"""Metrics of a server, sampled on a connection of its own, whatever its product."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.collectors.presence import Presence, labels
from nephoscope.collectors.waits import Waits
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.dialects import Dialect

_log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""How long a server is waited for: the others are sampled after it."""
_LOOK_PATIENCE_S = 0.5
"""How long a look at the sessions may take, in s: looks are many, and one that is missed costs little."""
_REFUSALS = 3
"""So many looks in a row fail, while the same connection still answers, before a server is looked at no more."""

Samples = dict[str | None, dict[str, float]]
"""Values by metric: a source's own under None, and those of others that it knows of by their names."""


@dataclass(frozen=True)
class ServerReading:
    """What a server says of itself at one moment."""

    levels: Mapping[str, float]
    """What is so now: sessions, those that work, those that wait for locks."""
    counters: Mapping[str, float]
    """What only grows, by the metric's name without ``_per_s``."""
    others: Samples = field(default_factory=dict)


@dataclass(frozen=True)
class Collector:
    """What the servers of one product are asked. Both questions raise ``MeasurementError``."""

    read: Callable[[_engine.Admin], ServerReading]
    """Asked once a second."""
    look: Callable[[_engine.Admin, float], Mapping[str, float] | None] | None = None
    """What sessions at work are waiting for: their number by event. It is given a time limit in s; the answer is None
    where the server shows nothing of the sessions. A product without wait events has no such question."""
    every: int = 1
    """Which look there is of those that the monitor offers: each, each second …."""
    nodes: Callable[[str], Mapping[str, str]] | None = None
    """Splits a URL into those of its nodes, by their names, where each node tells only of itself."""


class Sampler:
    """Samples a server, as one product's collector sees it."""

    def __init__(
        self,
        url: str,
        dialect: Dialect | None,
        collector: Collector,
        presence: Presence,
        meet: Callable[[float, set[str]], None],
    ) -> None:
        """Connect to nothing yet; who else is at work on the server is told to ``meet``.

        Without a dialect of SQL, sessions have no labels, and nobody is met.
        """
        self._url = url
        self._dialect = dialect
        self._collector = collector
        self._presence = presence
        self._meet = meet
        self._others = set[str]()
        self._admin: _engine.Admin | None = None
        self._last: tuple[float, Mapping[str, float]] | None = None
        self._waits = Waits()
        self._refusals = 0
        self._look_failed = False

    def look(self, number: int) -> None:
        """Look at what the sessions wait for, if this look's number is one of the product's.

        Without a connection there is none: `sample` makes it. A look that fails leaves a gap and no error.
        """
        look = self._collector.look
        if look is None or self._admin is None or self._look_failed or self._refusals >= _REFUSALS:
            return
        if number % self._collector.every:
            return
        try:
            seen = look(self._admin, _LOOK_PATIENCE_S)
        except MeasurementError as error:
            self._look_failed = True
            _log.info("the server's wait events were not read: %s", error)
        else:
            self._refusals = 0
            if seen is not None:
                self._waits.add(seen)

    def sample(self, now: float) -> Samples:
        """Read what the server says, and tell of what grows how fast. Raises ``MeasurementError``."""
        try:
            if self._admin is None:
                self._admin = _engine.Admin(
                    self._url,
                    connect_timeout_s=PATIENCE_S,
                    on_connect=[self._presence.announce(self._dialect)] if self._dialect else [],
                    answer_timeout_s=PATIENCE_S,
                )
            reading = self._collector.read(self._admin)
            others = labels(self._admin, self._dialect) if self._dialect else set[str]()
            others -= {self._presence.label}
        except MeasurementError:
            self.close()
            self._last = None
            self._look_failed = False
            raise
        # The connection answers, so the server was not away when a look failed: it refuses looks.
        self._refusals += self._look_failed
        self._look_failed = False
        # What is seen twice has not ended just when it was seen.
        self._meet(now, others & self._others)
        self._others = others
        values = {**reading.levels, **self._waits.take()}
        if self._last is not None:
            before, last = self._last
            seconds = max(now - before, 1e-3)
            rates = {
                name: max(value - last.get(name, value), 0) / seconds
                for name, value in reading.counters.items()
            }
            values |= {f"{name}_per_s": rate for name, rate in rates.items()}
            read, hit = (rates.get(name, 0.0) for name in ("blocks_read", "blocks_hit"))
            if read + hit > 0:
                values["cache_hit_ratio"] = hit / (read + hit)
        self._last = (now, reading.counters)
        return {None: values, **reading.others}

    def close(self) -> None:
        """End the connection; the next sample makes another."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
