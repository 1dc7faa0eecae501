"""Quotas of a cluster's nodes, by control groups: nodes on one machine do not take its processors from each other."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

from nephoscope.errors import InputError
from nephoscope.systems.cluster.provider import ClusterProviderSettings
from nephoscope.systems.machine.control_group import ControlGroup
from nephoscope.systems.machine.control_groups import Place, find_place

if TYPE_CHECKING:
    from pathlib import Path

CpuQuota = Literal["off", "if-permitted", "required"]

_PERIOD_US = 10_000
"""Of a quota: short, so that a node which has used it up does not stand still for long."""
_LEAST_VCORES = 0.1
"""The kernel's least quota is 1 ms in each period."""


class NodesSettings(ClusterProviderSettings):
    """The ``[system]`` table of several nodes on this machine."""

    cpu_quota: CpuQuota = "off"
    """Whether each node is kept to its vCores, so that nodes on one machine do not take them from each other: by
    control groups, where the system permits that."""

    @classmethod
    @abstractmethod
    def nodes_of(cls, table: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever TOML can hold
        """Tell how many nodes a table asks for, which has not been checked yet."""

    @model_validator(mode="before")
    @classmethod
    def _count_nodes(cls, table: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
        """Say how many nodes there are where the resources leave it to the system: a stored study says it."""
        given = table.get("resources") if isinstance(table, dict) else None
        if isinstance(given, dict) and isinstance(nodes := cls.nodes_of(table), int):
            return {**table, "resources": {"nodes": nodes, **given}}
        return table

    @model_validator(mode="after")
    def _check_nodes(self) -> Self:
        resources, nodes = self.resources, self.nodes_of(dict(self))
        if resources is not None and resources.nodes != nodes:
            raise ValueError(f"resources.nodes is {resources.nodes}, and the system has {nodes}")
        if resources is not None and self.cpu_quota != "off" and resources.vcores < _LEAST_VCORES:
            raise ValueError(f"a quota is of {_LEAST_VCORES:g} vCores at least; it is {resources.vcores:g}")
        return self


class NodeQuotas:
    """The control groups of a cluster's nodes, where there are quotas."""

    def __init__(self, wanted: CpuQuota) -> None:
        """Take whether there are to be quotas; touch nothing yet."""
        self._wanted = wanted
        self._place: Place | None = None
        self._why_not: str | None = None
        self._groups: dict[Path, ControlGroup] = {}
        self._vcores: float | None = None

    def find_place(self) -> None:
        """See whether nodes can be kept to their vCores. Raises ``InputError`` where they must be and cannot."""
        if self._wanted == "off":
            return
        try:
            self._place = find_place()
        except InputError as error:
            if self._wanted == "required":
                raise InputError(f"system.cpu_quota: {error}") from error
            self._why_not = str(error)

    def group_of(self, folder: Path) -> ControlGroup | None:
        """Give the control group of the node in a folder; a node that comes back there has the same one."""
        if self._place is None:
            return None
        if folder not in self._groups:
            self._groups[folder] = ControlGroup(
                self._place, folder, vcores=self._vcores, period_us=_PERIOD_US
            )
        return self._groups[folder]

    def keep_to(self, vcores: float | None) -> None:
        """Keep nodes to so many vCores each: those that there are, and those to come. None lets those to come have all.

        Raises ``MeasurementError``.
        """
        self._vcores = vcores
        if vcores is not None:
            for group in self._groups.values():
                group.set_quota(vcores)

    def facts(self) -> dict[str, object]:
        """Tell what each node is kept to, or why it is not."""
        if self._place is not None:
            return {"cpu_quota": self._vcores}
        return {} if self._why_not is None else {"no_cpu_quota": self._why_not}

    def lift(self) -> None:
        """Let all nodes have what they want: they end sooner."""
        for group in self._groups.values():
            group.lift()

    def remove(self) -> None:
        """Remove the groups. Raises ``MeasurementError`` where one cannot be removed."""
        groups, self._groups = self._groups, {}
        for group in groups.values():
            group.remove()
