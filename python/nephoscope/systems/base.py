"""What a provider gives: a system under test, for as long as a run needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from nephoscope import registry
from nephoscope.dialects import ANY_URL
from nephoscope.errors import MeasurementError
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from nephoscope.settings.actions import Action
    from nephoscope.settings.base import Role
    from nephoscope.settings.registered import SystemSettings


class System(BaseModel):
    """A system that is ready to be measured."""

    model_config = ConfigDict(frozen=True)

    # Not in the text form: these URLs may hold passwords, and a text form ends in logs and tracebacks.
    rw: tuple[str, ...] = Field(repr=False)
    """URLs of the endpoints that take writes."""
    ro: tuple[str, ...] = Field(default=(), repr=False)
    """URLs of the read-only endpoints."""
    resources: Resources | None = None
    """What it was given; None where nobody has said."""
    facts: dict[str, Any] = Field(default_factory=dict)
    """What the provider itself knows of the system, for the manifest: never a secret."""
    is_cached: bool = False
    """Whether its data lies in nephoscope's own cache: there another study's data may be replaced unasked."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """An action that has been done, for the run's events."""

    action: Action
    node: str | None
    """The node that it was done to; None for the system as a whole."""
    began_ns: int
    """Just before the system was touched, on the monotonic clock (``_engine.monotonic_ns``)."""
    ended_ns: int
    """When the provider had nothing more to do."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What else is worth keeping: never a secret."""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The resources that a system has from a time on."""

    time_ns: int
    """On the monotonic clock: since when, or where the provider was asked what there is now, when it was asked."""
    resources: Resources
    answered_ns: int | None = None
    """When the answer was there, of a provider that was asked; None of one that keeps a time line of its own."""


class Provider(ABC):
    """Gives a system and takes it back: a context manager around a measurement.

    What can be done to a system meanwhile is up to its provider: an evaluator asks ``actions``, and a score that
    needs more is absent with that reason. An action is bounded in time and may be called from any one thread at a time.
    """

    name: ClassVar[str]
    """How a study names it."""
    summary: ClassVar[str]
    """One line for ``nephoscope systems``."""
    settings_type: ClassVar[type[SystemSettings]]
    dialect_url: ClassVar[str] = ANY_URL
    """A URL whose driver speaks the dialect of its systems: before one is started only that matters."""

    @abstractmethod
    def __init__(self, settings: Any) -> None:  # noqa: ANN401 - each provider takes its own settings type
        """Take validated settings; touch nothing yet."""

    @abstractmethod
    def start(self) -> System:
        """Make the system ready. Raises ``InputError`` or ``MeasurementError``."""

    @abstractmethod
    def stop(self) -> None:
        """Give the system back. Called once, whatever happened in between."""

    def actions(self) -> frozenset[Action]:
        """Tell what ``act`` can do to the system that was started."""
        return frozenset()

    def act(
        self,
        action: Action,
        *,
        node: str | None = None,
        resources: Resources | None = None,
        settings: Mapping[str, bool | int | float | str] | None = None,
    ) -> Done:
        """Do something to the system; returns when that is done.

        ``node`` is one of ``nodes``; where it is left out, the provider takes the one that the action is meant for:
        the one that takes writes, or for ``promote``, ``add_node`` and ``remove_node`` a read-only one.
        ``resources`` are for ``resize``, ``settings`` for ``set``.

        Raises ``MeasurementError`` where it cannot be done, is not done within its time limit, or has failed.
        """
        del node, resources, settings
        raise MeasurementError(f"the provider {self.name} cannot {action}")

    def cancel(self) -> None:  # noqa: B027 - not every provider can
        """End what ``act`` or ``allocation`` does just now on another thread, as far as it can be ended.

        Nobody waits for that call any more: it should fail, or return, soon. May be called again, and where nothing is
        done. By default nothing is cancelled.
        """

    def nodes(self) -> Mapping[str, Role]:
        """Tell the nodes that there are now, and what each takes; empty where the provider knows none."""
        return {}

    def endpoints(self, role: Role, tenant: str | None = None) -> tuple[str, ...]:
        """Tell the URLs of a role as they are now, of a tenant where tenants have their own; like ``System``'s, secret.

        An endpoint keeps its address while roles move between nodes; only nodes that come or go change them.
        """
        del role, tenant
        raise MeasurementError(f"the provider {self.name} does not tell its endpoints")

    def adds(self) -> Role:
        """Tell what the nodes take that ``add_node`` adds.

        Those that take writes, as all others do, have no endpoint of their own: the one that there is leads to them.
        """
        return "ro"

    def endpoint_of(self, node: str) -> str:
        """Tell the URL of one node alone, where its nodes have one. Raises ``MeasurementError``."""
        raise MeasurementError(f"the provider {self.name} does not tell where {node} is")

    def parameter(self, name: str) -> bool | int | float | str:
        """Tell what a parameter of the server is now, as ``set`` takes it.

        Raises ``MeasurementError`` where there is no such parameter, or the provider cannot tell.
        """
        raise MeasurementError(f"the provider {self.name} does not tell what {name} is")

    def allocation(self) -> tuple[Allocation, ...]:
        """Tell what the system was given since its start, as a time line; empty where the provider does not know.

        Of a provider that has to be asked (`allocation_period`) it is every answer, with the times of the asking.
        """
        return ()

    def allocation_period(self) -> float | None:
        """Tell how often ``allocation`` has to be asked while a load changes, in seconds, as it knows the present only.

        None where the provider keeps a time line of its own: then asking once at the end is enough.
        """
        return None

    def processes(self) -> tuple[int, ...]:
        """Tell the processes of the servers that run now on this machine; empty where the provider knows none.

        Descendants are among them. For any thread.
        """
        return ()

    def io_records(self) -> Path | None:
        """Tell the folder in which the server that takes writes records its I/O; None where it does not.

        ``_engine.StorageRecording`` reads it, also after the server has ended; the server's next start empties it.
        """
        return None

    def log_folder(self) -> Path | None:
        """Tell the folder with the whole log of the server that takes writes; None where it is not kept.

        It is there after the server has ended, until its next start.
        """
        return None

    def relation_files(self) -> Mapping[str, str]:
        """Name the relations by the paths of their first files, relative to the data folder of that server.

        As they are now: a relation that is rewritten has other files. Empty where the provider cannot tell.
        """
        return {}

    def vacuum(self) -> None:  # noqa: B027 - not every product has to
        """Reclaim the room of rows that are gone, where the product does so late, and gather its statistics anew.

        It returns when that is done. Raises ``MeasurementError``.
        """

    def __enter__(self) -> Self:
        """Nothing is started here, so that ``start`` may fail inside the ``with``."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the system back."""
        self.stop()


def provider_class(name: str) -> type[Provider]:
    """Return the class of a provider. Raises ``InputError``."""
    loaded: type[Provider] = registry.load("systems", name)
    return loaded
