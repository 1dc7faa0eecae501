"""What the tests of control groups share: whether this machine lets us make them, and who is in one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from nephoscope.errors import InputError
from nephoscope.systems.machine.control_groups import Place, find_place
from nephoscope.systems.machine.group_guard import members
from nephoscope.systems.postgres.serverless import EmbeddedServerless, EmbeddedServerlessSettings

if TYPE_CHECKING:
    from postgres_lab import Lab


def _place() -> Place | str:
    try:
        return find_place()
    except InputError as error:
        return str(error)


PLACE = _place()
needs_groups = pytest.mark.skipif(isinstance(PLACE, str), reason=str(PLACE))


def place() -> Place:
    assert isinstance(PLACE, Place)
    return PLACE


def serverless(lab: Lab, **settings: Any) -> EmbeddedServerless:
    """A system of a tenth to a half of a processor: so that it is its quota that limits it, and not the machine.

    It seems full early, lest others on this machine keep it from that.
    """
    brief: dict[str, Any] = {"data": lab.folder, "period": 0.2, "scale_up": 0.5, "scale_down": 0.2}
    brief |= {"min_vcores": 0.1, "max_vcores": 0.5, "step": 0.1}
    return EmbeddedServerless(EmbeddedServerlessSettings(**(brief | settings)))


def processes_of(provider: EmbeddedServerless) -> set[int]:
    """Find who is in the control group of a provider: the same in each of its hierarchies."""
    assert provider._group is not None
    limit = time.monotonic() + 10
    # They are read one after the other, and processes come and go between.
    while True:
        first, *others = (set(members(folder)) for folder in provider._group.folders)
        if all(one == first for one in others):
            return first
        assert time.monotonic() < limit, (first, others)


def use_of(group: Any, seconds: float) -> float:
    """Measure how many processors' time a group uses."""
    began, used = time.monotonic(), group.used_ns()
    time.sleep(seconds)
    return float(group.used_ns() - used) / 1e9 / (time.monotonic() - began)
