"""A node of a cluster: a server that takes writes, or follows the one that does."""

from __future__ import annotations

import logging
import shutil
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nephoscope.errors import MeasurementError, NephoscopeError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.machine import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.systems.cluster.product import SettingValue
    from nephoscope.systems.cluster.server import Server

_log = logging.getLogger(__name__)

COPY_S = 1800.0
"""The longest that a copy of a database may take."""
PROMOTE_S = 60.0
"""A replica first replays what it has received."""
FOLLOW_S = 15.0
"""So long may a replica go without a stream from the primary; it asks for one ten times a second."""
CATCH_UP_S = 300.0
"""The longest that a replica which streams may need until it has what the primary had at the beginning."""

LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Began:
    """When an action touched the system first, and what is worth telling of it."""

    node: str | None
    at_ns: int
    detail: Mapping[str, Any]


class LostTheWayError(MeasurementError):
    """A replica does not follow: its log and the primary's have gone different ways, or a part is missing."""


class Node(ABC):
    """One server of a cluster."""

    ways_back: Sequence[str] = ("started",)
    """How what is in a folder may become a replica again, the quickest way first; a copy is the last resort."""
    copied_by: str
    """The program that makes a copy."""

    def __init__(self, name: str, server: Server, delay_s: float = 0.0) -> None:
        """Take a server that has not been started; as a replica it shows commits ``delay_s`` later."""
        self.name = name
        self.server = server
        self.delay_s = delay_s
        self.is_paused = False
        self._rejoining = server.folder.path / "rejoining"

    @property
    def is_running(self) -> bool:
        """Whether it runs and is not paused."""
        return not self.is_paused and self.server.is_running

    @property
    def address(self) -> str | None:
        """``127.0.0.1:port``, also while it is paused; None where it does not run."""
        return f"{HOST}:{self.server.port}" if self.server.is_running else None

    @property
    def owner(self) -> tuple[int, int]:
        """The user and the group of the server's own files."""
        return self.server.account.uid, self.server.account.gid

    def facts(self) -> dict[str, object]:
        """Tell where it is."""
        return {"folder": str(self.server.folder.path), "port": self.server.port}

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def has_data(self) -> bool:
        """Whether there is a whole database in its folder."""
        folder = self.server.folder
        return (folder.data / folder.traits.mark).exists() and not self._rejoining.exists()

    @property
    @abstractmethod
    def is_replica(self) -> bool:
        """Whether its server will follow another one when it starts."""

    @property
    @abstractmethod
    def timeline(self) -> int:
        """The number of promotions behind its data, counted from 1; 0 where it has no data that took writes."""

    @abstractmethod
    def is_copy_of(self, other: Self) -> bool:
        """Whether both come from one empty database."""

    # --- what is done to it --------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End it at once, paused or not; returns when it has gone."""
        self.server.kill()
        self.is_paused = False

    def halt(self) -> None:
        """End it in good order; its folder stays ours."""
        self.resume()
        self.server.halt()

    def stop(self) -> None:
        """End it in good order and give its folder back."""
        self.resume()
        self.server.stop()

    def pause(self) -> None:
        """Let all its processes stand still."""
        processes.pause(self.server.pid)
        self.is_paused = True

    def resume(self) -> None:
        """Let its processes go on; harmless where they do."""
        if self.is_paused:
            processes.resume(self.server.pid)
            self.is_paused = False

    def reload(self, settings: Mapping[str, SettingValue]) -> None:
        """Change settings that need no restart; returns when new sessions have them."""
        self.server.configure(settings)

    # --- to follow -----------------------------------------------------------------------------------------------

    @abstractmethod
    def follow(self, primary: Self) -> None:
        """Take the log of another server from now on; what runs looks for it at once."""

    def copy_from(self, primary: Self) -> None:
        """Take a copy of a running server, in place of whatever there is."""
        folder = self.server.folder
        folder.take(self.server.account)  # given back where the server did not start
        shutil.rmtree(folder.unfinished, ignore_errors=True)
        self._copy(primary, folder.unfinished)
        shutil.rmtree(folder.data, ignore_errors=True)
        folder.unfinished.rename(folder.data)
        self._rejoining.unlink(missing_ok=True)

    @abstractmethod
    def _copy(self, primary: Self, place: Path) -> None:
        """Make a copy of a running server in a folder that does not exist yet: a replica when it starts."""

    def _go_back(self, way: str, primary: Self) -> bool:
        """Prepare what is in the folder to follow, by one of the ways; False where that is no way for it.

        Raises:
            NephoscopeError: it should be one, and has failed.

        """
        del primary
        return way == "started" and self.is_replica

    @abstractmethod
    def goal(self) -> str:
        """Tell how far the log of this primary is."""

    @abstractmethod
    def progress(self, goal: str, *, shown: bool) -> tuple[bool, bool]:
        """Tell whether this replica has a stream from the primary, and whether it has come to a goal there."""

    def catch_up(self, primary: Self, *, shown: bool = True) -> None:
        """Wait until this replica shows to readers, or has at least received, what the primary has now.

        Raises:
            LostTheWayError: it gets no stream from the primary.
            MeasurementError: it gets one, and is not there in time.

        """
        goal = primary.goal()
        began = streamed = time.monotonic()
        while True:
            streams, there = self.progress(goal, shown=shown)
            if streams and there:
                return
            now = time.monotonic()
            streamed = now if streams else streamed
            if now - streamed > FOLLOW_S:
                raise LostTheWayError(
                    str(self.server.folder.failure(f"{self.name} has had no stream for {FOLLOW_S:.0f} s"))
                )
            limit_s = CATCH_UP_S + self.delay_s
            if now - began > limit_s:
                raise MeasurementError(
                    f"{self.name} has not caught up with the primary within {limit_s:.0f} s"
                )
            time.sleep(LOOK_AGAIN_S)

    @abstractmethod
    def received(self) -> int:
        """Tell how much of the log has come to this replica, in a measure that is the same for all replicas."""

    def end_for(self, new: Self) -> None:
        """End this primary in good order, with all that has been committed received by a replica."""
        del new
        self.halt()

    @abstractmethod
    def has_all_of(self, old: Self) -> bool:
        """Tell whether this replica has received all of a primary that has ended in good order."""

    def join(self, primary: Self) -> str:
        """Make this node, which does not run, a replica that serves, whatever is in its folder.

        Returns:
            How: one of the ways back, ``started`` where its data fitted, or the program that made a copy.

        Raises:
            NephoscopeError: it cannot be made one.

        """
        self.server.folder.take(self.server.account)
        self.follow(primary)
        for way in self.ways_back:
            try:
                if not self.is_copy_of(primary) or not self._go_back(way, primary):
                    continue
                self._start_behind(primary)
            except NephoscopeError as error:
                _log.info("%s is not back by the way %r, and tries another: %s", self.name, way, error)
                self.server.halt()
            else:
                return way
        self.copy_from(primary)
        self._start_behind(primary)
        return self.copied_by

    def _start_behind(self, primary: Self) -> None:
        self.server.folder.keep_password(primary.server.folder.password)
        self.server.start()
        self._begin_to_follow(primary)
        self.catch_up(primary)

    def start(self) -> None:
        """Start its server, in the role that its data has."""
        self.server.start()

    def _begin_to_follow(self, primary: Self) -> None:  # noqa: B027 - not every product has to
        """Do what this replica can only do while its server runs, and before it is waited for."""

    # --- to lead -------------------------------------------------------------------------------------------------

    def promote(self) -> None:
        """Make this running replica take writes; returns when it does.

        Raises:
            MeasurementError: it does not in time; it has been killed then, lest it does so later.

        """
        try:
            self._promote()
        except BaseException:
            self.kill()
            raise

    @abstractmethod
    def _promote(self) -> None:
        """Make this running replica take writes within ``PROMOTE_S``."""

    def keep_log_for(self, names: Sequence[str]) -> None:  # noqa: B027 - not every product has to
        """See that this primary keeps its log for these replicas, and for no others."""

    @abstractmethod
    def wait_for(self, names: Sequence[str]) -> None:
        """Let the commits of this primary wait for these replicas; of a cluster that is synchronous."""

    def restarts_last(self, settings: Mapping[str, SettingValue]) -> bool:
        """Tell whether this primary has to be restarted after its replicas, for them to take these settings.

        Raises:
            MeasurementError: there is no such order.

        """
        del settings
        return True

    def after_restart(self) -> None:  # noqa: B027 - not every product has to
        """Do what this primary has to once it runs with new settings, before its replicas are restarted."""


def bring_home(home: Node, others: list[Node]) -> None:
    """See that the database which took the last writes is in the folder of ``home``; none of the nodes runs.

    It may be elsewhere after a run in which another node was promoted.
    """
    best = max([home, *others], key=lambda node: node.timeline)
    if best.timeline <= home.timeline:
        return
    displaced = home.server.folder.path / "data.displaced"
    shutil.rmtree(displaced, ignore_errors=True)
    if home.server.folder.data.exists():
        home.server.folder.data.rename(displaced)
    best.server.folder.data.rename(home.server.folder.data)
    home._rejoining.unlink(missing_ok=True)  # noqa: SLF001 - a function of this class
    if displaced.exists():
        displaced.rename(best.server.folder.data)
