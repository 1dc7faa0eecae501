"""The course of a load: what is asked of it, over time."""

from __future__ import annotations

import contextlib
import threading
from bisect import insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from nephoscope.settings.loads import (
    AccessSetting,
    Level,
    Load,
    RampSetting,
    UniformAccess,
    mix_between,
    skew_between,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STEPS = 50
"""In so many steps a mix and an access distribution move to others: each step changes a share by 2 % of the way."""

_TOLD = ("concurrency", "rate", "mix", "access")
"""What a run tells of a load."""

_ACCESS: TypeAdapter[AccessSetting] = TypeAdapter(AccessSetting)


def steps(before: Load, load: Load) -> Iterator[tuple[float, Load]]:
    """Give the changes that a load's transition is made of, each with its time after the beginning, in s.

    A step has the value of its middle. Raises ``ValueError`` where there is nothing to move from, or no way.
    """
    length = load.transition
    if length is None:
        return
    if load.mix is not None and before.mix is None:
        raise ValueError("a transition moves from a mix before it, and there is none")
    for step in range(1, STEPS + 1):
        mix = access = None
        if load.mix is not None and before.mix is not None:
            mix = mix_between(before.mix, load.mix, step / STEPS)
        if load.access is not None:
            access = skew_between(before.access or UniformAccess(), load.access, step / STEPS)
        yield (step - 0.5) / STEPS * length, Load(mix=mix, access=access)


def at_once(load: Load) -> Load:
    """Return what a load changes at its beginning: a transition comes to its mix and access by steps."""
    return load if load.transition is None else replace(load, mix=None, access=None)


@dataclass
class LoadCourse:
    """What is asked of one load, as it changes; a change may be told of before its time, and by several threads."""

    _changes: list[tuple[float, Load]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, at_s: float, load: Load) -> None:
        """Keep that the load changes at a time, in s; ramps need their length."""
        with self._lock:
            insort(self._changes, (at_s, load), key=lambda change: change[0])

    def at(self, time_s: float) -> Load:
        """Return what is asked at a time: its level as a number, or None before the first one, its mix and access."""
        with self._lock:
            changes = [change for change in self._changes if change[0] <= time_s]
        now = Load()
        for at_s, load in changes:
            if load.concurrency is not None or load.rate is not None:
                now = replace(
                    now,
                    concurrency=_value(load.concurrency, time_s - at_s),
                    rate=_value(load.rate, time_s - at_s),
                )
            share = _share(load, time_s - at_s)
            if load.mix is not None:
                now = replace(now, mix=load.mix if now.mix is None else mix_between(now.mix, load.mix, share))
            if load.access is not None:
                known = now.access if share < 1 else None
                moved = load.access if known is None else skew_between(known, load.access, share)
                now = replace(now, access=moved)
        return now

    @property
    def moves(self) -> bool:
        """Whether some change takes time: a ramp or a transition."""
        return any(
            load.transition is not None or RampSetting in {type(load.rate), type(load.concurrency)}
            for _, load in self._changes
        )


def _share(load: Load, since_s: float) -> float:
    """Return how much of a transition lies behind; mix and access move in steps."""
    if load.transition is None or since_s >= load.transition:
        return 1.0
    return round(since_s / load.transition * STEPS) / STEPS


def _value(level: Level | None, since_s: float) -> float | None:
    if not isinstance(level, RampSetting):
        return level
    share = min(since_s / level.over, 1.0) if level.over else 1.0
    return level.from_ + (level.to - level.from_) * share


def described(load: Load, seconds: float | None) -> dict[str, Any]:
    """Describe what a load asks for, for an event of a run; a ramp without a length takes ``seconds``."""
    asked = load.to_engine(seconds)
    kept: dict[str, Any] = {name: asked[name] for name in _TOLD if name in asked}
    return kept if load.transition is None else {**kept, "transition_s": load.transition}


def load_of(described: Mapping[str, Any]) -> Load:
    """Return the load that an event of a run describes; an access distribution that nobody knows is left out."""
    access = None
    with contextlib.suppress(ValidationError):
        access = _ACCESS.validate_python(described["access"]) if "access" in described else None
    return Load(
        concurrency=_level_of(described.get("concurrency")),
        rate=_level_of(described.get("rate")),
        mix=described.get("mix"),
        access=access,
        transition=described.get("transition_s"),
    )


def _level_of(described: Any) -> Level | None:  # noqa: ANN401 - a number or a table
    if not isinstance(described, dict):
        return described if described is None else float(described)
    return RampSetting(**{"from": described["from"], "to": described["to"], "over": described["seconds"]})
