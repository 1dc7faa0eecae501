"""What a provider gives: a system under test, for as long as a run needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from types import TracebackType


class Settings(BaseModel):
    """A table of a study, which nothing changes after validation.

    Unknown keys, infinite numbers and values of another type (``true`` for 1, ``"4"`` for 4) are errors.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


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


class SystemSettings(Settings):
    """The ``[system]`` table of a study; each provider adds its own keys."""

    provider: str
    """Who gives the system: ``nephoscope systems`` lists the providers."""
    resources: Resources | None = None
    """What the system was given, for its cost: see [resources](systems.md#resources)."""


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


class Provider(ABC):
    """Gives a system and takes it back: a context manager around a measurement."""

    name: ClassVar[str]
    """How a study names it."""
    summary: ClassVar[str]
    """One line for ``nephoscope systems``."""
    settings_type: ClassVar[type[SystemSettings]]

    @abstractmethod
    def __init__(self, settings: Any) -> None:  # noqa: ANN401 - each provider takes its own settings type
        """Take validated settings; touch nothing yet."""

    @abstractmethod
    def start(self) -> System:
        """Make the system ready. Raises ``InputError`` or ``MeasurementError``."""

    @abstractmethod
    def stop(self) -> None:
        """Give the system back. Called once, whatever happened in between."""

    def __enter__(self) -> Self:
        """Nothing is started here, so that ``start`` may fail inside the ``with``."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the system back."""
        self.stop()
