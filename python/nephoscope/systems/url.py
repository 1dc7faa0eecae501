"""A system that is there already: its endpoints and resources are what the study says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.systems.base import (
    Action,
    Allocation,
    Done,
    Provider,
    Resources,
    Role,
    System,
    SystemSettings,
)
from nephoscope.systems.hooks import Hooks, HookSettings
from nephoscope.variables import endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping


def _as_list(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    return [value] if isinstance(value, str) else value


Urls = Annotated[list[str], BeforeValidator(_as_list)]


class UrlSettings(SystemSettings):
    """The ``[system]`` table of a study that measures a system by its URLs.

    ``${NAME}`` in a URL stands for an environment variable, so that no password need stand in a study.
    """

    provider: Literal["url"] = "url"
    rw: Annotated[Urls, Field(min_length=1)]
    """The URLs of the endpoints that take writes; a single one needs no brackets."""
    ro: Urls = Field(default_factory=list)
    """The URLs of the read-only endpoints."""
    hooks: HookSettings = Field(default_factory=HookSettings)
    """Commands that do something to the system: see [hooks](systems.md#hooks)."""


class Url(Provider):
    """Hands out the endpoints of a study, and runs its hooks."""

    name: ClassVar[str] = "url"
    summary: ClassVar[str] = "a system that is there already, by the URLs of its endpoints"
    settings_type: ClassVar[type[SystemSettings]] = UrlSettings

    def __init__(self, settings: UrlSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._urls: dict[Role, tuple[str, ...]] = {}
        self._hooks = Hooks(settings.hooks, ())
        self._allocation: list[Allocation] = []

    def start(self) -> System:
        """Check the URLs, and ask for the allocation where there is a hook for it.

        Raises ``InputError``, and ``MeasurementError`` where that hook fails.
        """
        rw = tuple(endpoint(url, "system.rw") for url in self._settings.rw)
        ro = tuple(endpoint(url, "system.ro") for url in self._settings.ro)
        self._urls = {"rw": rw, "ro": ro}
        self._hooks = Hooks(self._settings.hooks, rw + ro)
        found = self.allocation()
        resources = self._settings.resources or (found[-1].resources if found else None)
        return System(rw=rw, ro=ro, resources=resources)

    def stop(self) -> None:
        """Nothing was started, so nothing is ended but a hook that nobody waits for any more."""
        self.cancel()

    def actions(self) -> frozenset[Action]:
        """Tell for what the study has hooks."""
        return self._hooks.actions()

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Run the hook of an action. Raises ``MeasurementError``."""
        began = _engine.monotonic_ns()
        self._hooks.act(action, node, resources, settings)
        return Done(action=action, node=node, began_ns=began, ended_ns=_engine.monotonic_ns())

    def cancel(self) -> None:
        """Kill the hook that runs, with all that it has started."""
        self._hooks.cancel()

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of the study."""
        del tenant
        if not self._urls:
            raise MeasurementError("this system has not been started")
        return self._urls[role]

    def allocation(self) -> tuple[Allocation, ...]:
        """Ask the hook what the system is given now, and tell what it has said since the start.

        Empty without such a hook. Raises ``MeasurementError`` where it fails.
        """
        asked = _engine.monotonic_ns()
        resources = self._hooks.allocation()
        last = self._allocation[-1].resources if self._allocation else None
        if resources is not None and resources != last:
            self._allocation.append(Allocation(time_ns=asked, resources=resources))
        return tuple(self._allocation)
