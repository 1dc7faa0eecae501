"""The addresses that clients know: each stays, and leads to whichever node has its role."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nephoscope import _engine

if TYPE_CHECKING:
    from nephoscope.settings.base import Role

_NOWHERE = "/dev/null/nowhere"
"""A socket that cannot exist. The port of a node that has ended could be somebody else's the next moment."""


@dataclass(frozen=True)
class ClientConnections:
    """The connections of clients to an address."""

    taken: int
    """All there ever were."""
    passed: int
    """Of these, those that stand and lead to a node, or on the way there."""
    waiting: int
    """Of these, those that wait because they are held."""


class FrontEndpoint:
    """One address on the loopback interface, with a fault proxy behind it.

    Where its node does not serve, who connects is reset.
    """

    def __init__(self, role: Role) -> None:
        """Listen on a free port; leads nowhere yet."""
        self.role = role
        self.proxy = _engine.FaultProxy(_NOWHERE)
        self._target = _NOWHERE

    @property
    def address(self) -> str:
        """Where clients connect to: ``127.0.0.1:port``."""
        return self.proxy.address

    def lead_to(self, address: str | None, *, cut: bool = False) -> None:
        """Lead new connections to a node, or nowhere; with ``cut`` those that stand are ended."""
        target = address or _NOWHERE
        if target != self._target or cut:
            self.proxy.set_target(target, cut)
            self._target = target

    def hold(self, *, holds: bool) -> None:
        """Have new connections wait, or wait no longer; those that stand go on."""
        self.proxy.hold(holds=holds)

    def connections(self) -> ClientConnections:
        """Tell what has come of connections until now."""
        counters = json.loads(self.proxy.counters())
        waiting = counters["waiting"]
        return ClientConnections(counters["accepted"], counters["open"] - waiting, waiting)

    def close(self) -> None:
        """Give the address back; connections are ended."""
        self.proxy.close()


class Front:
    """The endpoints of a cluster: one that takes writes, and one for each read-only node."""

    def __init__(self) -> None:
        """Make the endpoint that takes writes."""
        self.rw = FrontEndpoint("rw")
        self.ro: dict[str, FrontEndpoint] = {}
        """By the name of the node that it leads to; in the order in which they were made."""

    def of(self, role: Role) -> tuple[FrontEndpoint, ...]:
        """List the endpoints of a role, in the order in which they were made."""
        return (self.rw,) if role == "rw" else tuple(self.ro.values())

    def add(self, node: str) -> FrontEndpoint:
        """Make an endpoint for a read-only node."""
        endpoint = self.ro[node] = FrontEndpoint("ro")
        return endpoint

    def remove(self, node: str) -> None:
        """Take the endpoint of a read-only node away."""
        self.ro.pop(node).close()

    def hand_over(self, node: str, successor: str) -> None:
        """Let the endpoint of a read-only node be that of another one."""
        names = [successor if name == node else name for name in self.ro]
        self.ro = dict(zip(names, self.ro.values(), strict=True))

    def close(self) -> None:
        """Give all addresses back."""
        for endpoint in (self.rw, *self.ro.values()):
            endpoint.close()
