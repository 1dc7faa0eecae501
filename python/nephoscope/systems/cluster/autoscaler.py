"""What a serverless provider does beside the load: it looks at what the server uses, and gives it more or less."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.base import Allocation
from nephoscope.systems.cluster.scaling import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nephoscope.settings.resources import Resources
    from nephoscope.systems.cluster.cluster import Cluster
    from nephoscope.systems.cluster.front import FrontEndpoint
    from nephoscope.systems.cluster.scaling import Levels, Scaling
    from nephoscope.systems.machine.control_group import ControlGroup

_log = logging.getLogger(__name__)

_WAITING_LOOK_S = 0.005
"""How often a system that has paused looks whether somebody waits for it."""
_LAST_LOOK_S = 120.0
"""So long the thread may need to end: it may be just ending or starting the server."""


class Autoscaler:
    """A thread that samples a server's use and sets its quota, and the log of what the server was given.

    A pause ends the server in good order, so that its memory is free as well; connections are held at its address
    from before it ends, and the first of them has it started again.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        endpoint: FrontEndpoint,
        group: ControlGroup,
        scaling: Scaling,
        period_s: float,
        resources: Callable[[float], Resources],
    ) -> None:
        """Take a running server with its address and its group; ``resources`` are those of so many vCores."""
        self._cluster = cluster
        self._endpoint = endpoint
        self._group = group
        self._scaling = scaling
        self._period_s = period_s
        self._resources = resources
        self._line: list[Allocation] = []
        self._given = 0.0
        self._failure: MeasurementError | None = None
        # Who holds it may act on the server.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="autoscaler", daemon=True)
        self._looked_ns = self._used_ns = self._connected_ns = 0
        self._taken = 0

    @property
    def is_asleep(self) -> bool:
        """Whether the system has paused."""
        return self._given == 0

    # --- from beginning to end -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Give the most there is, and begin to look. Raises ``MeasurementError``."""
        self._give(self._scaling.levels.most)
        self._begin_anew()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; harmless where it has ended or was never started."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_LOOK_S)

    def line(self) -> tuple[Allocation, ...]:
        """Tell what the system was given since the start.

        Raises:
            MeasurementError: the thread has failed, so that nothing is scaled any more.

        """
        if self._failure is not None:
            raise self._failure
        return tuple(self._line)

    @contextlib.contextmanager
    def kept_awake(self) -> Iterator[None]:
        """Wake the system, and let it neither be scaled nor paused inside the ``with``.

        Raises:
            MeasurementError: it does not wake up.

        """
        with self._lock:
            if self.is_asleep:
                self._wake_up()
            try:
                yield
            finally:
                self._connected_ns = _engine.monotonic_ns()

    def change(self, levels: Levels) -> None:
        """Scale between other levels from now on; to be called inside ``kept_awake``."""
        self._scaling = replace(self._scaling, levels=levels)
        self._give(min(max(self._given, levels.least), levels.most))

    # --- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        period_ns = round(self._period_s * 1e9)
        begun = _engine.monotonic_ns()
        wait_s = self._period_s
        while not self._ended.wait(wait_s):
            try:
                with self._lock:
                    self._look()
            except (MeasurementError, OSError) as error:
                _log.warning("the autoscaler ends: %s", error)
                self._failure = MeasurementError(f"the autoscaler has failed: {error}")
                return
            if self.is_asleep:
                wait_s = _WAITING_LOOK_S
            else:
                # At whole periods since its start, however long a look takes.
                wait_s = (period_ns - (_engine.monotonic_ns() - begun) % period_ns) / 1e9

    def _look(self) -> None:
        if self.is_asleep:
            if self._endpoint.connections().waiting:
                self._wake_up()
            return
        now, used = _engine.monotonic_ns(), self._group.used_ns()
        elapsed = now - self._looked_ns
        if elapsed <= 0:
            return
        sample = Sample(
            given=self._given,
            used=(used - self._used_ns) / elapsed,
            held_s=(now - self._line[-1].time_ns) / 1e9,
            idle_s=self._idle_s(now),
        )
        self._looked_ns, self._used_ns = now, used
        vcores = self._scaling.next(sample)
        if vcores == 0:
            self._pause()
        else:
            self._give(vcores)

    def _idle_s(self, now: int) -> float:
        """Tell for how long nobody has been connected; a server that others have ended is not idle."""
        connections = self._endpoint.connections()
        if connections.passed or connections.taken != self._taken or not self._cluster.primary.is_running:
            self._connected_ns = now
        self._taken = connections.taken
        return (now - self._connected_ns) / 1e9

    def _begin_anew(self) -> None:
        """Begin a stretch of time over which the use is averaged."""
        self._looked_ns = self._connected_ns = _engine.monotonic_ns()
        self._used_ns = self._group.used_ns()

    def _give(self, vcores: float) -> None:
        """Set the quota, and note what holds from now on."""
        if vcores != self._given:
            self._group.set_quota(vcores)
            self._line.append(Allocation(time_ns=_engine.monotonic_ns(), resources=self._resources(vcores)))
            self._given = vcores

    def _pause(self) -> None:
        """End the server, unless somebody has come at the last moment: from before it ends who comes is held."""
        self._endpoint.hold(holds=True)
        if self._endpoint.connections().passed:
            self._endpoint.hold(holds=False)
            self._connected_ns = _engine.monotonic_ns()
            return
        try:
            self._cluster.stop_node(None)
        except BaseException:
            self._endpoint.hold(holds=False)
            raise
        self._give(0.0)  # until here it had what it had

    def _wake_up(self) -> None:
        """Start the server with the least there is, and let through who waits; they are reset where it fails."""
        self._give(self._scaling.levels.least)
        try:
            self._cluster.start_node(None)
        except InputError as error:  # its folder is not what it was
            raise MeasurementError(f"it does not wake up: {error}") from error
        finally:
            self._endpoint.hold(holds=False)
        self._begin_anew()
