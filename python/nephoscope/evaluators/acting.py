"""A provider's actions beside the load: the load's records are handled meanwhile, and every wait has a timeout."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.settings.actions import FAULTS, Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nephoscope.engine.loadrun import LoadRun
    from nephoscope.engine.probes import Probes
    from nephoscope.evaluators.base import Means
    from nephoscope.settings.actions import FaultName
    from nephoscope.settings.base import Role
    from nephoscope.systems.base import Provider

T = TypeVar("T")

_TURN_S = 0.05
_HURRY_S = 3.0
"""How long an abandoned action has to restore the system before it is cancelled, in s: a paused node has to resume."""
GRACE_S = 5.0
"""The timeout for the end of a cancelled action, in s."""


class Acting(Generic[T]):
    """An action on a thread of its own, which may be abandoned, and its result."""

    def __init__(self, work: Callable[[threading.Event], T], what: str) -> None:
        """Start ``work``; its event is set when the action is abandoned. ``what`` names the action in messages."""
        self._work = work
        self._what = what
        self._given_up = threading.Event()
        self._results: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._do, name="action", daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._results.append(self._work(self._given_up))
        except Exception as error:  # noqa: BLE001 - whatever a provider of somebody else's raises
            self._error = error

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def wait(self, load: LoadRun, limit_s: float) -> T:
        """Handle the load's records until the action is done; return its result.

        Raises ``MeasurementError`` if it fails or exceeds its timeout.
        """
        limit = time.monotonic() + limit_s
        while self.goes_on:
            if time.monotonic() >= limit:
                raise MeasurementError(f"{self._what} did not end within {limit_s:g} s, and was given up")
            load.pump_for(_TURN_S)
        return self.result()

    def give_up(self, provider: Provider, grace_s: float = GRACE_S) -> None:
        """End the action if it still runs: first its waits end, then the provider cancels it.

        Raises ``MeasurementError`` where the action runs on; it ends with this process.
        """
        self._given_up.set()
        self._thread.join(_HURRY_S)
        limit = time.monotonic() + grace_s
        # Repeated: the action may not have started its cancellable part yet.
        while self.goes_on and time.monotonic() < limit:
            provider.cancel()
            self._thread.join(_TURN_S)
        if self.goes_on:
            raise MeasurementError(f"{self._what} still goes on")

    def result(self) -> T:
        """Return the result. Raises ``MeasurementError`` if the action failed or has not ended."""
        if isinstance(self._error, NephoscopeError):
            raise MeasurementError(str(self._error)) from self._error
        if self._error is not None:
            raise MeasurementError(f"{self._what} failed: {self._error!r}") from self._error
        if not self._results:
            raise MeasurementError(f"{self._what} has not ended")
        return self._results[0]


def act_beside(means: Means, work: Callable[[threading.Event], T], what: str, limit_s: float) -> T:
    """Let ``work`` act on the provider while the load goes on; return its result.

    The action is abandoned after ``limit_s`` seconds, or when the run is interrupted. Raises ``MeasurementError`` if
    the action fails or is abandoned; ``what`` names it in the message.
    """
    acting = Acting(work, what)
    try:
        return acting.wait(means.load, limit_s)
    finally:
        if acting.goes_on:
            # An action that runs on is not reported: the reason of its abandonment matters more.
            with contextlib.suppress(MeasurementError):
                acting.give_up(means.provider)


# --- faults -----------------------------------------------------------------------------------------------------


def node_of(means: Means, role: Role) -> str | None:
    """Name a node of a role; None where the provider knows none by name."""
    return next((node for node, of in means.provider.nodes().items() if of == role), None)


def act_on(means: Means, event: str, action: Action, node: str | None, labels: Mapping[str, Any]) -> None:
    """Act on a node, and store when that was. Raises ``MeasurementError``."""
    done = means.provider.act(action, node=None if action is Action.PROMOTE else node)
    means.load.note(
        event,
        done.began_ns,
        **labels,
        action=str(action),
        node=done.node,
        took_s=(done.ended_ns - done.began_ns) / 1e9,
    )


def inject(
    means: Means,
    fault: FaultName,
    node: str | None,
    labels: Mapping[str, Any],
    *,
    pause_s: float,
    limit_s: float,
) -> None:
    """Cause a fault of a node beside the load, and store it; a pause lasts ``pause_s`` seconds.

    Raises ``MeasurementError`` if the provider fails, or takes longer than ``limit_s`` seconds besides the pause.
    """
    actions = FAULTS[fault]

    def act(given_up: threading.Event) -> None:
        for place, action in enumerate(actions):
            if action is Action.RESUME:
                given_up.wait(pause_s)
            act_on(means, "fault" if place == 0 else "action", action, node, labels)

    with _failures_noted(means, labels):
        act_beside(means, act, f"the fault {fault}", limit_s + (pause_s if Action.RESUME in actions else 0.0))


def fail(means: Means, fault: FaultName, node: str | None, labels: Mapping[str, Any], limit_s: float) -> None:
    """Do the first action of a fault beside the load, and store it: the node fails, and `recover` brings it back.

    Raises ``MeasurementError`` if the provider fails, or takes longer than ``limit_s`` seconds.
    """
    first = FAULTS[fault][0]
    with _failures_noted(means, labels):
        act_beside(
            means, lambda _: act_on(means, "fault", first, node, labels), f"the fault {fault}", limit_s
        )


def recover(
    means: Means, fault: FaultName, node: str | None, labels: Mapping[str, Any], limit_s: float
) -> None:
    """Do the other actions of a fault beside the load, and store them.

    Raises ``MeasurementError`` if the provider fails, or takes longer than ``limit_s`` seconds for one of them.
    """
    with _failures_noted(means, labels):
        for action in FAULTS[fault][1:]:
            act_beside(
                means,
                lambda _, action=action: act_on(means, "action", action, node, labels),  # type: ignore[misc]
                f"the {action} after the fault {fault}",
                limit_s,
            )


@contextlib.contextmanager
def _failures_noted(means: Means, labels: Mapping[str, Any]) -> Iterator[None]:
    """Store why a fault could not be done as a whole."""
    try:
        yield
    except MeasurementError as error:
        means.load.note("fault_failed", **labels, message=str(error))
        raise


def note_durability(means: Means, probes: Probes, labels: Mapping[str, Any], when: str) -> None:
    """Store the outcome of the probes' writes; ``when`` names the moment in the message.

    Raises ``MeasurementError`` if the system is not back.
    """
    try:
        found = probes.durability(means.system.rw[0])
    except MeasurementError as error:
        raise MeasurementError(f"{when} the system could not be read: {error}") from error
    counts = {"acknowledged": found.acknowledged}
    counts |= {"lost": len(found.lost), "indeterminate": len(found.indeterminate)}
    means.load.note("durability", **labels, **counts)
