"""A node of a Redis cluster with one node that takes writes: Redis copies and follows by itself."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, Self

from nephoscope.errors import MeasurementError
from nephoscope.systems.cluster.folder import HOST
from nephoscope.systems.cluster.node import Node
from nephoscope.systems.machine.folders import write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nephoscope.systems.redis.server import RedisServer

_LINEAGE = "lineage"
"""A file in the data: which empty database it comes from, the number of promotions since, and its role."""
_PAUSE_MS = 600_000


class RedisNode(Node):
    """One redis-server of a cluster."""

    copied_by = "PSYNC"
    server: RedisServer

    def __init__(self, name: str, server: RedisServer) -> None:
        """Take a server that has not been started."""
        super().__init__(name, server)
        self._last = 0
        """How far its log was when it ended as the primary."""

    # --- what it is ----------------------------------------------------------------------------------------------

    @property
    def is_replica(self) -> bool:
        """Whether it follows another one when it starts."""
        return self._lineage()[2] == "ro"

    @property
    def timeline(self) -> int:
        """The number of promotions behind its data, counted from 1; 0 where it has no data that took writes."""
        return 0 if not self.has_data or self.is_replica else self._lineage()[1]

    def is_copy_of(self, other: Self) -> bool:
        """Whether both come from one empty database."""
        return self.has_data and self._lineage()[0] == other._lineage()[0] != ""

    def _lineage(self) -> tuple[str, int, str]:
        try:
            origin, generation, role = (self.server.folder.data / _LINEAGE).read_text().split()
            return origin, int(generation), role
        except (OSError, ValueError):  # damaged: no copy of anything
            return "", 1, "rw"

    def _keep_lineage(self, origin: str, generation: int, role: str) -> None:
        file = self.server.folder.data / _LINEAGE
        write_file(file, f"{origin} {generation} {role}\n", private=True, owner=self.owner)

    def start(self) -> None:
        """Start its server, in the role that its data has."""
        if not self.is_replica:
            self._lead()
        self.server.start()
        if not self._lineage()[0]:
            self._keep_lineage(secrets.token_hex(8), 1, "rw")

    # --- to follow -----------------------------------------------------------------------------------------------

    def follow(self, primary: Self) -> None:
        """Follow another server from now on; what runs does so at once."""
        self.server.configure({"replicaof": f"{HOST} {primary.server.port}"})

    def _lead(self) -> None:
        self.server.configure_anew(
            {name: value for name, value in self.server.settings.items() if name != "replicaof"}
        )

    def _go_back(self, way: str, primary: Self) -> bool:
        del primary
        return way == "started"  # what it has beside the primary's it gives up itself

    def _copy(self, primary: Self, place: Path) -> None:
        """Make an empty database: Redis fills it when it starts."""
        with self.server.folder.opened_log() as output:
            self.server.initialise(place, primary.server.folder.password, output)

    def _begin_to_follow(self, primary: Self) -> None:
        origin, generation, _ = primary._lineage()
        self._keep_lineage(origin, generation, "ro")

    def goal(self) -> str:
        """Tell how many bytes of its log this primary has written."""
        return self.server.replication()["master_repl_offset"]

    def progress(self, goal: str, *, shown: bool) -> tuple[bool, bool]:
        """Ask this replica how far it is."""
        says = self.server.replication()
        streams = says.get("master_link_status") == "up"
        return streams, streams and _offset(says, shown=shown) >= int(goal)

    def received(self) -> int:
        """Tell how many bytes of the log have come to this replica."""
        return _offset(self.server.replication(), shown=False)

    def end_for(self, new: Self) -> None:
        """End in good order, with all that has been acknowledged at the new primary: writes wait before it ends."""
        self.server.ask("CLIENT", "PAUSE", str(_PAUSE_MS), "WRITE")
        try:
            self._last = int(self.goal())
            new.catch_up(self, shown=False)
            # It would wait for its replicas to say so, a second or more.
            self.server.ask("CONFIG", "SET", "shutdown-timeout", "0")
        except BaseException:
            with contextlib.suppress(MeasurementError):
                self.server.ask("CLIENT", "UNPAUSE")
            raise
        super().end_for(new)

    def has_all_of(self, old: Self) -> bool:
        """Compare with how far the old primary was when writes had ended."""
        return self.received() >= old._last

    # --- to lead -------------------------------------------------------------------------------------------------

    def _promote(self) -> None:
        self._lead()
        origin, generation, _ = self._lineage()
        self._keep_lineage(origin, generation + 1, "rw")

    def wait_for(self, names: Sequence[str]) -> None:
        """Do nothing: in Redis the client waits for replicas, not the server."""


def _offset(says: dict[str, str], *, shown: bool) -> int:
    return int(says.get("slave_repl_offset" if shown else "slave_read_repl_offset", -1))
