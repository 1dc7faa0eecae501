"""All that providers and evaluators of others import: it stays as it is, wherever the parts behind it move."""

from nephoscope._engine import monotonic_ns
from nephoscope.errors import InputError, MeasurementError
from nephoscope.evaluators.base import Evaluator, Means, Measurements
from nephoscope.evaluators.connected import absent_for
from nephoscope.evaluators.demand import Demand
from nephoscope.evaluators.points import measured_phases, read_points
from nephoscope.evaluators.stored import Stored
from nephoscope.report.kit.charts import Axis, Line, XYChart
from nephoscope.report.kit.parts import Estimate, Fact, Number, Part
from nephoscope.report.kit.run import Run
from nephoscope.report.kit.scored import details
from nephoscope.scoring.formulas import Absent, Score
from nephoscope.settings.actions import Action
from nephoscope.settings.base import Settings
from nephoscope.settings.loads import Load, MixSetting
from nephoscope.settings.registered import MeasureSettings, SystemSettings
from nephoscope.settings.resources import Resources
from nephoscope.settings.units import Duration
from nephoscope.settings.variables import endpoint
from nephoscope.store.protocol import Selection
from nephoscope.systems.base import Allocation, Done, Provider, System
from nephoscope.tables.columns import RunFigures, number, text, whole
from nephoscope.tables.model import Column, Table

__all__ = [
    "Absent",
    "Action",
    "Allocation",
    "Axis",
    "Column",
    "Demand",
    "Done",
    "Duration",
    "Estimate",
    "Evaluator",
    "Fact",
    "InputError",
    "Line",
    "Load",
    "Means",
    "MeasureSettings",
    "MeasurementError",
    "Measurements",
    "MixSetting",
    "Number",
    "Part",
    "Provider",
    "Resources",
    "Run",
    "RunFigures",
    "Score",
    "Selection",
    "Settings",
    "Stored",
    "System",
    "SystemSettings",
    "Table",
    "XYChart",
    "absent_for",
    "details",
    "endpoint",
    "measured_phases",
    "monotonic_ns",
    "number",
    "read_points",
    "text",
    "whole",
]
