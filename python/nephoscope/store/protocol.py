"""The interface of a stored run for its readers. The store implements it, and tests by a made-up run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


WAIT = "wait:"
"""How the metrics of wait events begin: ``wait:Lock/transactionid``."""
SAMPLE_S = 1.0
"""The time between two samples of a host or a server, in s: a rate tells of so long before its time."""
_STREAM = "/"
"""No tenant has it in its name."""


def stream_name(tenant: str, number: int) -> str:
    """Name a stream of a tenant, counted from 1, where tenants are told apart: the first is the tenant itself."""
    return tenant if number == 1 else f"{tenant}{_STREAM}{number}"


def tenant_of(name: str) -> str:
    """Return the tenant of a stream, or of itself."""
    return name.partition(_STREAM)[0]


@dataclass(frozen=True)
class Phase:
    """A phase of a run, as its event and its intervals tell it."""

    number: int
    name: str
    kind: str
    labels: Mapping[str, Any]
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Selection:
    """Which of a run's histograms are added up: all of them, narrowed by each field that is not None."""

    phases: frozenset[int] | None = None
    """Numbers of phases; an interval never belongs to two of them."""
    tenant: str | None = None
    role: str | None = None
    transaction: str | None = None
    kind: Literal["latency", "service", "failed", "censored", "lateness"] = "latency"
    """Of committed transactions from the intended start, or from the first byte sent; latency of failed ones; how long
    at least the latency is of arrivals that had not ended with their phase; how late requests to a storage tier started
    (`nephoscope storage run`)."""


ALL = Selection()
"""Every latency of the run, warm-up included."""


class RunReader(Protocol):
    """A run directory, read. ``docs/run-directory.md`` is the contract of all that it holds.

    A run that was killed has less: then ``scores`` is None, a table has no rows, an event is missing. No
    method raises because something is absent; columns keep their names and types in a table without rows.
    """

    @property
    def name(self) -> str:
        """The folder's name, such as ``20261120T191500Z-first``."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """``manifest.json``; a run that was killed has the status ``killed``."""
        ...

    @property
    def study(self) -> str:
        """``study.toml`` as text: the resolved study."""
        ...

    @property
    def scores(self) -> Mapping[str, Any] | None:
        """``scores.json``, or None if there is none."""
        ...

    @property
    def intervals(self) -> pa.Table:
        """``intervals.parquet`` (or what ``intervals.jsonl`` holds, as the same table)."""
        ...

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """``events.jsonl``, in the order of the file."""
        ...

    @property
    def system_metrics(self) -> pa.Table:
        """``system.parquet``: ``time_s``, ``source``, ``metric``, ``value``."""
        ...

    @property
    def probes(self) -> pa.Table:
        """``probes.parquet``: a row for each probe; no rows where there were none."""
        ...

    @property
    def checks(self) -> pa.Table:
        """``checks.parquet``: what probes' checks came to, by slices of time; no rows where there were none."""
        ...

    def histogram(self, selection: Selection = ALL) -> Sequence[tuple[int, int]]:
        """Return the selected histograms, added up, as buckets: (highest value in ns, count), ascending.

        The buckets are HdrHistogram's own (its *recorded values* iteration), so every percentile that the
        report derives from them is the one that HdrHistogram would give. Empty where nothing was committed.
        A report asks for one selection a measured phase and a few a mix and tenant: decode the file once.
        """
        ...

    def percentiles(
        self,
        windows: Sequence[tuple[float, float]],
        percentiles: Sequence[float],
        selection: Selection = ALL,
    ) -> Sequence[Sequence[float | None]]:
        """Return percentiles in ns for each window of time, of the selected histograms added up.

        ``percentiles`` are 0 to 100; 100 is the maximum. A histogram belongs to the window ``[start, end)``
        in which the middle of its interval lies; windows are ascending and do not overlap, so one pass over
        the file is enough. A window in which nothing was committed has None for each percentile.
        """
        ...
