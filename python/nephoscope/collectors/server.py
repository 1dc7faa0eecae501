"""Metrics of a server, sampled on a connection of its own, whatever its product."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.collectors.presence import Presence, labels
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.dialects import Dialect

PATIENCE_S = 2.0
"""How long a server is waited for: the others are sampled after it."""

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


class Sampler:
    """Samples a server, as one product's ``read`` sees it."""

    def __init__(
        self,
        url: str,
        dialect: Dialect,
        read: Callable[[_engine.Admin], ServerReading],
        presence: Presence,
        meet: Callable[[float, set[str]], None],
    ) -> None:
        """Connect to nothing yet; who else is at work on the server is told to ``meet``."""
        self._url = url
        self._dialect = dialect
        self._read = read
        self._presence = presence
        self._meet = meet
        self._others = set[str]()
        self._admin: _engine.Admin | None = None
        self._last: tuple[float, Mapping[str, float]] | None = None

    def sample(self, now: float) -> Samples:
        """Read what the server says, and tell of what grows how fast. Raises ``MeasurementError``."""
        try:
            if self._admin is None:
                self._admin = _engine.Admin(
                    self._url,
                    connect_timeout_s=PATIENCE_S,
                    on_connect=[self._presence.announce(self._dialect)],
                    answer_timeout_s=PATIENCE_S,
                )
            reading = self._read(self._admin)
            others = labels(self._admin, self._dialect) - {self._presence.label}
        except MeasurementError:
            self.close()
            self._last = None
            raise
        # What is seen twice has not ended just when it was seen.
        self._meet(now, others & self._others)
        self._others = others
        values = dict(reading.levels)
        if self._last is not None:
            before, last = self._last
            seconds = max(now - before, 1e-3)
            rates = {
                name: max(value - last.get(name, value), 0) / seconds
                for name, value in reading.counters.items()
            }
            values |= {f"{name}_per_s": rate for name, rate in rates.items()}
            read, hit = rates["blocks_read"], rates["blocks_hit"]
            if read + hit > 0:
                values["cache_hit_ratio"] = hit / (read + hit)
        self._last = (now, reading.counters)
        return {None: values, **reading.others}

    def close(self) -> None:
        """End the connection; the next sample makes another."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
