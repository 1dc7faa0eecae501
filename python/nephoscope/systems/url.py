"""A system that is there already: its endpoints and resources are what the study says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.actions import Action
from nephoscope.settings.registered import SystemSettings
from nephoscope.settings.urls import Urls
from nephoscope.settings.variables import endpoint
from nephoscope.systems.base import Allocation, Done, Provider, System
from nephoscope.systems.hooks import Hooks, HookSettings
from nephoscope.systems.parameters import shown, tells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.settings.base import Role
    from nephoscope.settings.resources import Resources


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


class _Added(BaseModel):
    """What the hook ``add_node`` prints."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ro: str = Field(repr=False)
    node: str | None = None


class Url(Provider):
    """Hands out the endpoints of a study, and runs its hooks."""

    name: ClassVar[str] = "url"
    summary: ClassVar[str] = "a system that is there already, by the URLs of its endpoints"
    settings_type: ClassVar[type[SystemSettings]] = UrlSettings

    def __init__(self, settings: UrlSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings
        self._urls: dict[Role, tuple[str, ...]] = {}
        self._hooks = Hooks(settings.hooks)
        self._allocation: list[Allocation] = []
        self._added: list[_Added] = []

    def start(self) -> System:
        """Check the URLs, and ask for the allocation where there is a hook for it.

        Raises ``InputError``, and ``MeasurementError`` where that hook fails.
        """
        rw = tuple(endpoint(url, "system.rw") for url in self._settings.rw)
        ro = tuple(endpoint(url, "system.ro") for url in self._settings.ro)
        self._urls = {"rw": rw, "ro": ro}
        found = self.allocation()
        resources = self._settings.resources or (found[-1].resources if found else None)
        return System(rw=rw, ro=ro, resources=resources)

    def stop(self) -> None:
        """Nothing was started, so nothing is ended but a hook that nobody waits for any more."""
        self._hooks.end()

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
        if action is Action.REMOVE_NODE and node is None and self._added:
            node = self._added[-1].node
        began = _engine.monotonic_ns()
        said = self._hooks.act(action, node, resources, settings)
        ended = _engine.monotonic_ns()
        if action is Action.ADD_NODE:
            node = self._add(said).node
        elif action is Action.REMOVE_NODE:
            self._added = [added for added in self._added if added.node != node]
        return Done(action=action, node=node, began_ns=began, ended_ns=ended)

    def _add(self, said: str) -> _Added:
        """Read what the hook says of the node that it has added. Raises ``MeasurementError``."""
        try:
            added = _Added.model_validate_json(said)
            url = endpoint(added.ro, "system.hooks.add_node")
            _engine.check_url(url)
        except (ValidationError, InputError) as error:
            # What it says may hold a password.
            what = f": {error}" if isinstance(error, InputError) else ""
            raise MeasurementError(
                'system.hooks.add_node has to print where the node is, as {"ro": "postgresql://host/database",'
                f' "node": "its name"}}{what}'
            ) from None
        name = added.node or f"added{len(self._added) + 1}"
        if any(name == other.node for other in self._added):
            raise MeasurementError(f"system.hooks.add_node has added a node {name!r} before")
        self._added.append(_Added(ro=url, node=name))
        return self._added[-1]

    def nodes(self) -> Mapping[str, Role]:
        """Tell the nodes that the hook has added; the others have no names."""
        return {added.node: "ro" for added in self._added if added.node}

    def cancel(self) -> None:
        """Kill the hook that runs, with all that it has started."""
        self._hooks.cancel()

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of the study, and those of the nodes that were added."""
        del tenant
        if not self._urls:
            raise MeasurementError("this system has not been started")
        return self._urls[role] + tuple(added.ro for added in self._added if role == "ro")

    def parameter(self, name: str) -> bool | int | float | str:
        """Ask an endpoint that takes writes. Raises ``MeasurementError``, also for a system that does not tell."""
        url = self.endpoints("rw")[0]
        return shown(url, name) if tells(url) else super().parameter(name)

    def allocation(self) -> tuple[Allocation, ...]:
        """Ask the hook what the system is given now, and tell all that it has answered since the start.

        Empty without such a hook. Raises ``MeasurementError`` where it fails.
        """
        asked = _engine.monotonic_ns()
        resources = self._hooks.allocation()
        if resources is not None:
            answered = _engine.monotonic_ns()
            self._allocation.append(Allocation(time_ns=asked, resources=resources, answered_ns=answered))
        return tuple(self._allocation)

    def allocation_period(self) -> float | None:
        """Tell how often the hook is to be asked; None without one."""
        hooks = self._settings.hooks
        return None if hooks.allocation is None else hooks.allocation_period
