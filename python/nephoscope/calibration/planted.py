"""A provider around another one, whose actions plant something else at a known moment: evaluators run as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.settings.registered import SystemSettings
from nephoscope.systems.base import Done, Provider, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nephoscope.settings.actions import Action
    from nephoscope.settings.base import Role
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.base import Allocation


class Planted(Provider):
    """Does as the provider within, but for the actions that are given to it."""

    name: ClassVar[str] = "planted"
    summary: ClassVar[str] = "what calibration plants around another provider"
    settings_type: ClassVar[type[SystemSettings]] = SystemSettings

    def __init__(self, inner: Any, deeds: Mapping[Action, Callable[[Any], Done]]) -> None:  # noqa: ANN401
        """Take the provider within, which each deed is called with; touch nothing yet."""
        self._inner = inner
        self._deeds = deeds

    def start(self) -> System:
        """Start the provider within."""
        system: System = self._inner.start()
        return system

    def stop(self) -> None:
        """Stop it."""
        self._inner.stop()

    def actions(self) -> frozenset[Action]:
        """Tell what either can do."""
        known: frozenset[Action] = self._inner.actions()
        return known | frozenset(self._deeds)

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Plant what stands for an action; others are the inner provider's."""
        if action in self._deeds:
            return self._deeds[action](self._inner)
        done: Done = self._inner.act(action, node=node, resources=resources, settings=settings)
        return done

    def nodes(self) -> Mapping[str, Role]:
        """Tell the nodes of the provider within."""
        nodes: Mapping[str, Role] = self._inner.nodes()
        return nodes

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell its endpoints."""
        endpoints: tuple[str, ...] = self._inner.endpoints(role, tenant)
        return endpoints

    def adds(self) -> Role:
        """Tell what its nodes take."""
        role: Role = self._inner.adds()
        return role

    def endpoint_of(self, node: str) -> str:
        """Tell the URL of one of its nodes."""
        url: str = self._inner.endpoint_of(node)
        return url

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell its allocation."""
        allocation: tuple[Allocation, ...] = self._inner.allocation()
        return allocation

    def allocation_period(self) -> float | None:
        """Tell how often that one has to be asked."""
        period: float | None = self._inner.allocation_period()
        return period
