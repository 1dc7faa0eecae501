"""What the page shows of the evaluators: the scores, and a section each."""

from __future__ import annotations

from typing import Literal

from nephoscope.report.kit.charts import TimeChart, XYChart
from nephoscope.report.kit.parts import Estimate, Fact, Method, Number, Part


class PatternRow(Part):
    """A pattern of load that was played; ``sessions`` and ``by_slot`` are those of its slots."""

    pattern: str
    repetition: int | None = None
    sessions: str
    by_slot: str
    tps: Estimate
    cost: str
    vcores: Number = None
    e1: Estimate


class TransitionRow(Part):
    """A change of the load, and what the system did about it; shares are 0 to 1."""

    pattern: str
    load: str
    vcores: str
    scaling_s: Number = None
    scaling_low_s: Number = None
    scaling_high_s: Number = None
    scaling_cost: str
    under_time: Number = None
    over_time: Number = None
    under_area: Number = None
    over_area: Number = None
    oscillations: int | None = None
    slo_broken: int | None = None
    wake_up_s: Number = None


class Elasticity(Part):
    """Patterns of load, what was served, and what the system had."""

    charts: tuple[TimeChart, ...] = ()
    patterns: tuple[PatternRow, ...]
    transitions: tuple[TransitionRow, ...]
    note: str = ""
    method: tuple[Method, ...] = ()


class TenantRow(Part):
    """What a tenant got in a pattern; ``share`` is of its own throughput alone, 0 to 1 but for noise."""

    tenant: str
    sessions: str = ""
    tps: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    share: Number = None
    color: str = "c0"


class TenancyPattern(Part):
    """A pattern of load on several tenants."""

    name: str
    t: Number = None
    jain: Number = None
    rows: tuple[TenantRow, ...] = ()


class Tenancy(Part):
    """The tenants under each pattern."""

    patterns: tuple[TenancyPattern, ...]
    statement: str
    method: tuple[Method, ...] = ()


class ScoreRow(Part):
    """One of the PERFECT scores."""

    key: str
    name: str
    meaning: str
    better: Literal["higher", "lower"] | None = None
    unit: str = ""
    estimate: Estimate = Estimate()
    repetitions: int | None = None
    how: str = ""


class AbsentScores(Part):
    """Scores that are absent for one and the same reason; each with its name."""

    scores: tuple[Fact, ...]
    reason: str


class OTerm(Part):
    """A part of O on the scale of the logarithm; ``left``, ``width`` and ``zero`` are shares of its bar's track."""

    key: str
    value: float
    left: float
    width: float
    zero: float
    color: str


class Scores(Part):
    """All scores: those that were measured, and why the others were not."""

    statement: str
    rows: tuple[ScoreRow, ...] = ()
    absent: tuple[AbsentScores, ...] = ()
    terms: tuple[OTerm, ...] = ()
    note: str = ""


class FailureRow(Part):
    """A failure; ``resolution_ms`` is how far apart the probes on both sides of the service's return are.

    A ``recovery_s`` below ``recovery_resolution_s`` is known only to be so.
    """

    name: str
    outage_s: Number = None
    resolution_ms: Number = None
    recovery_s: Number = None
    recovery_resolution_s: Number = None
    interrupted: bool
    failed_probes: int | None = None
    late_probes: int | None = None
    tps_before: Number = None
    errors: str = ""
    acknowledged: int | None = None
    lost: int | None = None
    indeterminate: int | None = None


class Failures(Part):
    """Nodes that failed, and what came of it (the paper's Figure 7 for each)."""

    statement: str
    charts: tuple[XYChart, ...]
    rows: tuple[FailureRow, ...]
    outage: Estimate
    recovery: Estimate
    medians: tuple[str, ...] = ()
    """For each role a sentence of its medians."""
    later: tuple[str, ...] = ()
    """What interrupted the service again, after an outage."""
    note: str = ""
    method: tuple[Method, ...] = ()


class LagRow(Part):
    """The lags of a kind beside a load, in ms; ``mean`` over repetitions, percentiles over all markers."""

    load: str
    kind: str
    node: str = ""
    count: int
    unseen: int
    mean: Estimate
    p50: Number = None
    p95: Number = None
    p99: Number = None
    max: Number = None
    half_width: Number = None


class StaleRow(Part):
    """How likely a read is stale beside a load, for each of the times that the table has; shares are 0 to 1."""

    load: str
    shares: tuple[Estimate, ...]


class Lags(Part):
    """How long what was committed took to be seen on the read-only endpoints."""

    statement: str
    charts: tuple[XYChart, ...]
    timeline: tuple[XYChart, ...] = ()
    rows: tuple[LagRow, ...]
    after_ms: tuple[float, ...]
    stale: tuple[StaleRow, ...]
    score: Estimate
    note: str = ""
    method: tuple[Method, ...] = ()
