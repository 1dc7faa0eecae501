"""The factors of a designed experiment and its design: ``[[factor]]`` and ``[experiment]`` of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope import _engine
from nephoscope.masking import masked
from nephoscope.settings.base import Settings
from nephoscope.settings.units import one_as_list
from nephoscope.settings.validation import validated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

MOST_FRACTIONAL = 12
"""The most factors of a fractional design: the search for its generators ends quickly for these."""
MOST_TREATMENTS = 4096

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]


class LevelTable(Settings):
    """A level that sets several keys, such as a number of nodes with their size."""

    name: Name
    """What the level is called."""
    set: dict[str, Any]
    """The keys of the study and their values: `{ "system.nodes" = 4, "system.resources.vcores" = 2 }`."""


Level = LevelTable | str | bool | int | float


class FactorTable(Settings):
    """An entry of ``[[factor]]``: a key of the study that is varied, and its levels."""

    name: Name
    """What the factor is called in tables: letters, digits, `_`, `.` and `-`, at most 40."""
    key: str | None = None
    """The key of the study that its levels set, as for `--set`: `workload.scale`, `measure.0.concurrency`. It is left
    out where the levels are tables."""
    levels: Annotated[list[Level], Field(min_length=2, max_length=50)]
    """Its levels, from the low one to the high one: values of the key, or tables with a `name` and what they `set`."""

    @field_validator("levels")
    @classmethod
    def _each_once(cls, levels: list[Level]) -> list[Level]:
        names = [level_name(level) for level in levels]
        if len(set(names)) < len(names):
            raise ValueError("a level is there more than once")
        return levels

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        tables = sum(isinstance(level, LevelTable) for level in self.levels)
        if tables not in {0, len(self.levels)} or (self.key is None) != (tables > 0):
            raise ValueError(
                "levels are values of the key, or without a key tables with a name and what they set"
            )
        keys = {key for level in self.levels for key in settings_of(self, level)}
        if wrong := next((key for key in keys if not all(key.split("."))), None):
            raise ValueError(f"{wrong!r} is no key of a study; a key is such as workload.scale")
        if wrong := next(
            (key for key in keys if key.split(".")[0] in {"study", "factor", "experiment"}), None
        ):
            raise ValueError(
                f"{wrong} cannot be varied; allowed are keys of system, workload, load and the other tables"
            )
        return self

    @property
    def names(self) -> list[str]:
        """Its levels as tables show them."""
        return [level_name(level) for level in self.levels]

    @property
    def values(self) -> list[float] | None:
        """Its levels as numbers in ascending or descending order; None where they are none."""
        numbers = [float(v) for v in self.levels if isinstance(v, int | float) and not isinstance(v, bool)]
        ordered = numbers in (sorted(numbers), sorted(numbers, reverse=True))
        return numbers if len(numbers) == len(self.levels) and ordered else None


def level_name(level: Level) -> str:
    """Write a level as tables show it: without a URL's password."""
    match level:
        case LevelTable():
            return level.name
        case bool():
            return str(level).lower()
        case float():
            return f"{level:g}"
        case _:
            return masked(_engine.redact(str(level)))


def without_passwords(factor: FactorTable) -> FactorTable:
    """Return a factor whose levels may be written down: passwords of URLs and known secrets are masked."""
    levels = [
        level.model_copy(update={"set": _masked(level.set)})
        if isinstance(level, LevelTable)
        else _masked(level)
        for level in factor.levels
    ]
    return factor.model_copy(update={"levels": levels})


def _masked(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    match value:
        case str():
            return masked(_engine.redact(value))
        case list():
            return [_masked(entry) for entry in value]
        case dict():
            return {key: _masked(entry) for key, entry in value.items()}
        case _:
            return value


def settings_of(factor: FactorTable, level: Level) -> dict[str, Any]:
    """Return the keys that a level sets, with their values."""
    return level.set if isinstance(level, LevelTable) else {factor.key or "": level}


def _none_as_empty(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read what experiments have kept that were made when there was one factor of blocks, or none."""
    return [] if value is None else value


class ExperimentTable(Settings):
    """``[experiment]``: the design of the runs over the factors, and what is read of them."""

    design: Literal["full", "fractional"] = "full"
    """`full`: each combination of the levels; `fractional`: a part of the combinations of two levels each."""
    resolution: Annotated[int, Field(ge=3, le=6)] | None = None
    """Of a fractional design without generators: the smallest part that has at least this resolution; 4 if left out."""
    generators: dict[str, list[str]] = Field(default_factory=dict)
    """Of a fractional design: a factor, and those whose product gives its level: `{ cache = ["nodes", "level"] }`."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 2
    """How often each combination is run. One alone leaves no interval where all interactions are in the model."""
    blocks: Annotated[list[str], BeforeValidator(one_as_list), BeforeValidator(_none_as_empty)] = Field(
        default_factory=list
    )
    """A factor that is changed as seldom as possible, such as one that restarts the server: once a level in each
    replicate. Of several factors it is their combinations."""
    keep_system: bool = False
    """Whether runs that follow one another and have the same table `system` measure one system, started once, with
    whatever earlier runs have left in its caches and its data; else each run starts its own."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The seed of the random order of the runs."""
    responses: Annotated[list[str], Field(min_length=1), BeforeValidator(one_as_list)] = Field(
        default_factory=lambda: ["tps", "p99_ms"]
    )
    """The [responses](#responses) whose effects are computed."""
    logarithmic: Annotated[list[str], BeforeValidator(one_as_list)] = Field(default_factory=list)
    """Those of them whose effects multiply, and are computed of their logarithms, as are the intervals of means: an
    effect is then a change in percent. For responses whose spread grows with them, such as latencies."""
    objectives: Annotated[list[str], BeforeValidator(one_as_list)] = Field(default_factory=list)
    """The responses of the Pareto front; all responses if left out."""
    scaling: str | None = None
    """A factor of numbers, such as of nodes, over which scale-up, speed-up and linearity are computed."""
    over: str | None = None
    """A factor of numbers above 0, such as of sessions, over which each response is drawn: a chart for each combination
    of the other factors' levels."""
    by: str | None = None
    """A factor that has a line for each of its levels in the charts of `over`, in place of charts of their own."""


def factors_of(tables: Any, faults: list[str]) -> tuple[FactorTable, ...]:  # noqa: ANN401 - whatever TOML can hold
    """Read the entries of ``[[factor]]``; what is wrong is added to ``faults``."""
    if not isinstance(tables, list):
        faults.append("factor: expected [[factor]], once for each factor")
        return ()
    found = [validated(FactorTable, table, f"factor.{index}", faults) for index, table in enumerate(tables)]
    return tuple(factor for factor in found if factor is not None)


def experiment_faults(factors: Sequence[FactorTable], experiment: ExperimentTable) -> list[str]:
    """Tell what is wrong with the design of an experiment over these factors."""
    names = [factor.name for factor in factors]
    known = ", ".join(names)
    faults = [
        f"factor: the name {name!r} is there twice" for name in {n for n in names if names.count(n) > 1}
    ]
    keys = [(f.name, key) for f in factors for key in {k for one in f.levels for k in settings_of(f, one)}]
    faults += [
        f"factor: {key} is set by {' and '.join(name for name, other in keys if other == key)}; allowed: by one factor"
        for key in {key for _, key in keys}
        if sum(other == key for _, other in keys) > 1
    ]
    wanted = [(key, getattr(experiment, key)) for key in ("scaling", "over", "by")]
    faults += [
        f"experiment.{key}: there is no factor {name!r}; factors are {known}"
        for key, name in (*(("blocks", name) for name in experiment.blocks), *wanted)
        if name is not None and name not in names
    ]
    if experiment.by is not None and experiment.by == experiment.over:
        faults.append(
            "experiment.by: a factor that has a line for each level is another one than that of over"
        )
    if experiment.by is not None and experiment.over is None:
        faults.append("experiment.by: it belongs to experiment.over")
    faults += [
        f"experiment.logarithmic: {name!r} is no response of it; responses are {', '.join(experiment.responses)}"
        for name in experiment.logarithmic
        if name not in experiment.responses
    ]
    for key in ("scaling", "over"):
        factor = next((factor for factor in factors if factor.name == getattr(experiment, key)), None)
        if factor is not None and (factor.values is None or min(factor.values) <= 0):
            faults.append(
                f"experiment.{key}: the levels of {factor.name} are not all numbers above 0, in order"
            )
    more = _fraction_faults if experiment.design == "fractional" else _full_faults
    return faults + more(factors, experiment)


def _full_faults(factors: Sequence[FactorTable], experiment: ExperimentTable) -> list[str]:
    faults = []
    if experiment.generators or experiment.resolution is not None:
        faults.append('experiment: generators and resolution belong to design = "fractional"')
    number = 1
    for factor in factors:
        number *= len(factor.levels)
    if number > MOST_TREATMENTS:
        faults.append(
            f"factor: there are {number:,} combinations of the levels; allowed are {MOST_TREATMENTS:,}"
        )
    return faults


def _fraction_faults(factors: Sequence[FactorTable], experiment: ExperimentTable) -> list[str]:
    names = [factor.name for factor in factors]
    faults = [
        f"factor: {factor.name} has {len(factor.levels)} levels; in a fractional design each factor has two"
        for factor in factors
        if len(factor.levels) != 2  # noqa: PLR2004
    ]
    if not 3 <= len(factors) <= MOST_FRACTIONAL:  # noqa: PLR2004
        faults.append(
            f"factor: a fractional design has 3 to {MOST_FRACTIONAL} factors; there are {len(factors)}"
        )
    given = experiment.generators
    if given and experiment.resolution is not None:
        faults.append("experiment: a fractional design has generators, or a resolution: not both")
    for name, product in given.items():
        where = f"experiment.generators.{name}"
        if name not in names:
            faults.append(f"{where}: there is no factor {name!r}; factors are {', '.join(names)}")
        base = [other for other in names if other not in given]
        if len(set(product)) < 2 or len(set(product)) < len(product) or not set(product) <= set(base):  # noqa: PLR2004
            faults.append(
                f"{where}: expected two or more different factors without generators: {', '.join(base)}"
            )
    return faults
