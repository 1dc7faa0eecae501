"""What the page shows of scale-out and of parameters that were swept: a section each, with a part for each entry."""

from __future__ import annotations

from nephoscope.report.kit.charts import XYChart
from nephoscope.report.kit.parts import Estimate, Method, Number, Part


class StepRow(Part):
    """A mix with so many read-only nodes; ``of_first`` is its gain as a share of the first step's, 0 to 1."""

    mix: str
    color: str
    nodes: int
    tps: Estimate
    gain: Number = None
    of_first: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    serve_s: Number = None
    failed: int | None = None
    repetitions: int | None = None


class ScaledMix(Part):
    """How the throughput of a mix grows with the nodes; ``scale_up`` is its last TPS / its first."""

    mix: str
    color: str
    e2: Number = None
    r_squared: Number = None
    scale_up: Number = None


class ScaleOutEntry(Part):
    """What an entry of ``[[measure]]`` came to that adds read-only nodes."""

    name: str
    statement: str
    chart: XYChart
    rows: tuple[StepRow, ...]
    mixes: tuple[ScaledMix, ...]


class ScaleOut(Part):
    """Read-only nodes that were added one by one, and what each brought."""

    entries: tuple[ScaleOutEntry, ...]
    score: Estimate
    note: str
    method: tuple[Method, ...] = ()


class ValueRow(Part):
    """A mix at a level, at a value of the parameter; ``held`` is what the server said, where that reads otherwise."""

    value: str
    held: str = ""
    mix: str
    color: str
    sessions: Number = None
    tps: Estimate
    most_tps: bool = False
    p: Estimate
    most_p: bool = False
    cost_per_minute: Number = None
    p50_ms: Number = None
    p99_ms: Number = None
    set_s: Number = None
    failed: int | None = None
    repetitions: int | None = None


class ParameterEntry(Part):
    """What an entry of ``[[measure]]`` came to that sweeps a parameter of the server."""

    parameter: str
    statement: str
    charts: tuple[XYChart, ...]
    rows: tuple[ValueRow, ...]
    note: str = ""


class Parameters(Part):
    """Parameters of the server, and what each of their values brought (the paper's Figure 8)."""

    entries: tuple[ParameterEntry, ...]
    method: tuple[Method, ...] = ()
