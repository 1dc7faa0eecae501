"""A provider around another one: it does as that does, but for what its own class does otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.settings.registered import SystemSettings
from nephoscope.systems.base import Done, Provider, System

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nephoscope.settings.actions import Action
    from nephoscope.settings.base import Role
    from nephoscope.settings.resources import Resources
    from nephoscope.systems.base import Allocation


class Around(Provider):
    """Does as the provider within."""

    name: ClassVar[str] = "around"
    summary: ClassVar[str] = "what stands around another provider"
    settings_type: ClassVar[type[SystemSettings]] = SystemSettings

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - tests put in what is no provider
        """Take the provider within; touch nothing yet."""
        self._inner: Provider = inner

    def start(self) -> System:
        """Start the provider within."""
        return self._inner.start()

    def stop(self) -> None:
        """Stop it."""
        self._inner.stop()

    def actions(self) -> frozenset[Action]:
        """Tell what it can do."""
        return self._inner.actions()

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Have it done."""
        return self._inner.act(action, node=node, resources=resources, settings=settings)

    def cancel(self) -> None:
        """Cancel what it does."""
        self._inner.cancel()

    def nodes(self) -> Mapping[str, Role]:
        """Tell its nodes."""
        return self._inner.nodes()

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell its endpoints."""
        return self._inner.endpoints(role, tenant)

    def adds(self) -> Role:
        """Tell what the nodes take that it adds."""
        return self._inner.adds()

    def endpoint_of(self, node: str) -> str:
        """Tell the URL of one of its nodes."""
        return self._inner.endpoint_of(node)

    def parameter(self, name: str) -> bool | int | float | str:
        """Tell one of its parameters."""
        return self._inner.parameter(name)

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell its allocation."""
        return self._inner.allocation()

    def allocation_period(self) -> float | None:
        """Tell how often it has to be asked."""
        return self._inner.allocation_period()

    def processes(self) -> tuple[int, ...]:
        """Tell its processes."""
        return self._inner.processes()

    def io_records(self) -> Path | None:
        """Tell the folder of its recorded I/O."""
        return self._inner.io_records()

    def log_folder(self) -> Path | None:
        """Tell the folder of its log."""
        return self._inner.log_folder()

    def relation_files(self) -> Mapping[str, str]:
        """Tell the files of its relations."""
        return self._inner.relation_files()

    def vacuum(self) -> None:
        """Have it reclaim room."""
        self._inner.vacuum()
