"""The resources that a system was given."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nephoscope.settings.base import Settings


class Resources(Settings):
    """The resources that a system was given, as its cost is reckoned (METRICS, section 2).

    ``vcores``, ``memory_gb`` and ``storage_gb`` are those of one node and are multiplied by ``nodes``;
    ``iops`` and ``network_gbps`` are the system's as a whole (the reading that reproduces Table V).
    """

    nodes: int = Field(default=1, ge=1)
    """Nodes of the same size."""
    vcores: float = Field(ge=0)
    """Virtual cores of a node."""
    memory_gb: float = Field(ge=0)
    """In units of 2**30 bytes, as cloud price lists count."""
    storage_gb: float = Field(ge=0)
    """Storage of a node, in units of 2**30 bytes."""
    iops: float = Field(default=0, ge=0)
    """I/O operations per second that the system as a whole was given."""
    network_gbps: float = Field(default=0, ge=0)
    """Network bandwidth that the system as a whole was given."""
    network: Literal["tcp", "rdma"] = "tcp"
    """Which network the price book charges for."""


class ResourcesChange(Settings):
    """A change of resources; values that are left out stay."""

    nodes: int | None = Field(default=None, ge=1)
    """Nodes of the same size."""
    vcores: float | None = Field(default=None, ge=0)
    """Virtual cores of a node."""
    memory_gb: float | None = Field(default=None, ge=0)
    """Memory of a node."""
    storage_gb: float | None = Field(default=None, ge=0)
    """Storage of a node."""
    iops: float | None = Field(default=None, ge=0)
    """I/O operations per second of the system as a whole."""
    network_gbps: float | None = Field(default=None, ge=0)
    """Network bandwidth of the system as a whole."""

    def over(self, resources: Resources) -> Resources:
        """Return resources with the given values changed."""
        given = {name: getattr(self, name) for name in ResourcesChange.model_fields}
        return resources.model_copy(
            update={name: value for name, value in given.items() if value is not None}
        )
