"""The contents of the page, already computed: the template only lays them out.

Every figure is a number in the unit that its name says (or that its section states); a figure that is
absent is ``None``, and a number that is not finite becomes ``None`` at the door, so the page can never
print "nan". Times are seconds since the start of the load.
"""

from __future__ import annotations

from typing import Literal

from pydantic import SerializeAsAny

from nephoscope.report.kit.charts import TimeAxis, TimeChart, XYChart
from nephoscope.report.kit.parts import (
    Estimate,
    Fact,
    FactTable,
    Grid,
    Level,
    Number,
    Part,
    Percentiles,
    Verdict,
)


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
    """All scores: the measured ones, and the reasons of the absent ones."""

    statement: str
    rows: tuple[ScoreRow, ...] = ()
    absent: tuple[AbsentScores, ...] = ()
    terms: tuple[OTerm, ...] = ()
    note: str = ""


class Banner(Part):
    """The alert above everything else: the run is incomplete."""

    level: Level
    heading: str
    text: str


class Title(Part):
    """The head of the page."""

    study: str
    status: str
    banner: Banner | None = None
    facts: tuple[Fact, ...] = ()


class KeyFigure(Part):
    """One of the few figures that a reader in a hurry takes away, formatted."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
    level: Level | None = None
    link: str = ""


class MixRow(Part):
    """A row of the P-Score's table: one mix, at the load that it is scored at."""

    mix: str
    load: str
    tps: Estimate
    goodput: Number = None
    p: Estimate = Estimate()
    latency: Percentiles = Percentiles()
    repetitions: int = 0
    color: str | None = None


class Headline(Part):
    """The result: throughput and cost per mix."""

    figures: tuple[KeyFigure, ...] = ()
    mixes: tuple[MixRow, ...] = ()
    average: MixRow | None = None
    cost_per_minute: Number = None
    p_unit: str = "TPS per $/min"
    note: str = ""


class TimelineSection(Part):
    """The time line: charts with one time axis, and the phases that they share."""

    axis: TimeAxis
    charts: tuple[TimeChart, ...] = ()
    note: str = ""


class LatencyRow(Part):
    """Percentiles and outcomes of a transaction in a group; ``service`` marks service times, ``failed`` failures."""

    transaction: str
    percentiles: Percentiles
    committed: int = 0
    aborted: int = 0
    failed: int = 0
    retried: int = 0
    kind: Literal["transaction", "all", "service", "failed"] = "transaction"


class LatencyGroup(Part):
    """The rows of one mix at one load, or of one tenant."""

    name: str
    detail: str = ""
    rows: tuple[LatencyRow, ...]
    color: str = "c0"


class LatencySection(Part):
    """The distribution of latencies over the measured phases."""

    charts: tuple[XYChart, ...] = ()
    groups: tuple[LatencyGroup, ...] = ()
    tenants: tuple[LatencyGroup, ...] = ()
    part_of_load: str = "tenant"
    """What ``tenants`` are: tenants, or streams of one."""
    scope: str = ""


class CostRow(Part):
    """A resource and its cost; ``share`` of the whole, 0 to 1."""

    resource: str
    quantity: Number = None
    unit: str = ""
    per_hour: Number = None
    per_minute: Number = None
    share: Number = None
    color: str = "c0"


class CostSection(Part):
    """The cost of the system per minute by a price book."""

    price_book: str
    nodes: int | None = None
    lines: tuple[CostRow, ...] = ()
    per_minute: Number = None


class ErrorRow(Part):
    """Errors of one class; ``ticks`` are shares (0 to 1) of the run's length at which some occurred."""

    name: str
    count: int
    share: Number = None
    first_message: str = ""
    code: str = ""
    distinct: int = 1
    where: str = ""
    first_s: Number = None
    last_s: Number = None
    ticks: tuple[float, ...] = ()


class ConnectionRow(Part):
    """The numbers of connections that were lost, restored or refused, by tenant where there are several."""

    state: str
    tenant: str = ""
    count: int
    first_s: Number = None
    last_s: Number = None


class Errors(Part):
    """Errors of transactions by class, each attempt counted; other errors are in ``also``."""

    rows: tuple[ErrorRow, ...] = ()
    total: int = 0
    connections: tuple[ConnectionRow, ...] = ()
    dropped: int = 0
    statement: str = ""
    also: str = ""


class Accounting(Part):
    """started = committed + aborted + failed + in flight; unstarted and dropped arrivals are no part of it."""

    started: int | None = None
    committed: int = 0
    aborted: int = 0
    failed: int = 0
    in_flight: int | None = None
    dropped: int = 0
    unstarted: int = 0
    uncertain: int = 0
    holds: bool | None = None
    note: str = ""


class MetricRow(Part):
    """A metric over the measured phases."""

    source: str
    metric: str
    mean: Number = None
    low: Number = None
    high: Number = None


class Metrics(Part):
    """Small charts of metrics, and the same as a table."""

    charts: tuple[TimeChart, ...] = ()
    rows: tuple[MetricRow, ...] = ()
    note: str = ""


class WaitSection(Part):
    """What the server waited for, and what a transaction cost."""

    charts: tuple[TimeChart, ...] = ()
    tables: tuple[Grid, ...] = ()
    note: str = ""


class LimitRow(Part):
    """What a workload demands of a mix at one load, and what was measured; figures are formatted."""

    mix: str
    load: str
    what: str
    wanted: str
    measured: str
    outcome: str
    why: str = ""


class Shown(Part):
    """The section of a measurement: ``place`` is where it stands on the page, ``template`` lays out ``part``."""

    place: int
    anchor: str
    label: str
    template: str
    part: SerializeAsAny[Part]


class ReportView(Part):
    """The whole page."""

    name: str
    title: Title
    headline: Headline
    scores: Scores
    verdicts: tuple[Verdict, ...]
    limits: tuple[LimitRow, ...]
    sections: tuple[Shown, ...]
    timeline: TimelineSection
    waits: WaitSection | None
    latency: LatencySection
    cost: CostSection | None
    errors: Errors
    accounting: Accounting
    client: Metrics
    system: Metrics
    study: str
    environment: tuple[FactTable, ...]
    reproduce: tuple[Fact, ...]
    generator: str
