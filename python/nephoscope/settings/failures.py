"""Failures on a schedule in a study: by a script, or by laws of the times to failure and to repair."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nephoscope.settings.actions import FAULTS, FaultName
from nephoscope.settings.base import Settings
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self

MOST_FAILURES = 1000
"""More failures in a repetition are a slip of the pen."""


def _above_0(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("a mean time must be above 0")
    return seconds


MeanTime = Annotated[Duration, AfterValidator(_above_0)]


class TimeLaw(Settings):
    """How long something lasts: drawn anew each time."""

    law: Literal["exponential", "weibull", "constant"] = "exponential"
    """`exponential`: it may end at any moment alike, whatever has passed. `weibull`: with a `shape` above 1 it wears
    out, below 1 it fails early or late. `constant`: always the mean."""
    mean: MeanTime
    """The mean, of any law."""
    shape: Annotated[float, Field(ge=0.1, le=100)] | None = None
    """The shape of a `weibull` law; 1 is exponential."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.shape is not None) != (self.law == "weibull"):
            raise ValueError("shape goes with the law weibull, and with no other")
        return self


def _law(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read a time alone as the mean of an exponential law."""
    return {"mean": value} if isinstance(value, str | int | float) else value


Law = Annotated[TimeLaw, BeforeValidator(_law)]
Target = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]


class ScriptedFailure(Settings):
    """An entry of ``script``: a failure at a time."""

    at: Duration
    """When, since the start of each repetition's measured time."""
    fault: FaultName | None = None
    """What happens; the entry's `fault` if left out."""
    target: Target | None = None
    """Whose node fails: a role or a node's name; the first of `targets` if left out."""
    for_: Annotated[Duration | None, Field(alias="for")] = None
    """How long the node is left as it is until the repair begins. A `kill` and a `crash` are repaired at once if it is
    left out; a `pause` needs it; the other faults have no repair of their own."""


class FailureSettings(MeasureSettings):
    """The keys of an entry of ``[[measure]]`` whose nodes may fail on a schedule."""

    fault: FaultName = "kill"
    """What happens to a node: see [faults](#measure-failover)."""
    targets: Annotated[
        tuple[Target, ...], BeforeValidator(one_as_list), Field(min_length=1, strict=False)
    ] = ("rw",)
    """Whose nodes fail: `rw`, one of `ro`, or a node by its name. With `mttf` each fails by itself, independently."""
    script: list[ScriptedFailure] = Field(default_factory=list, max_length=MOST_FAILURES)
    """The failures, each at its time, in every repetition: see [scripts](#measurescript)."""
    mttf: Law | None = None
    """In place of a script: the law of the time from a repair to the next failure of a target, or its mean
    (exponential). See [laws](#measuremttf-and-measuremttr)."""
    mttr: Law | None = None
    """The law of the time from a failure until the repair begins, or its mean. A `pause` needs it; a `kill` and a
    `crash` are repaired at once if it is left out; the other faults have no repair of their own."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The seed of the draws: the same settings and seed give the same failures. Each repetition and target has draws of
    its own."""
    action_limit: Duration = 600.0
    """How long the provider may take for an action. What takes longer is given up, and the run ends."""
    duration: Duration = 60.0
    """How long a repetition is measured."""

    @model_validator(mode="after")
    def _failures_fit(self) -> Self:
        if min(self.duration, self.action_limit) <= 0:
            raise ValueError("duration and action_limit must be above 0")
        if self.script and (self.mttf or self.mttr):
            raise ValueError("script and mttf exclude each other: failures are listed, or drawn by laws")
        if self.mttr and not self.mttf:
            raise ValueError("mttr goes with mttf: without failures there is nothing to repair")
        if self.mttf:
            _check_repair(self.fault, self.mttr is not None, "mttr")
            if self.duration * len(self.targets) / self.mttf.mean > MOST_FAILURES:
                raise ValueError(f"mttf is so short that more than {MOST_FAILURES:,} failures are expected")
        for number, failure in enumerate(self.script):
            _check_repair(self.fault_of(failure), failure.for_ is not None, f"script.{number}.for")
        self._check_order()
        return self

    def _check_order(self) -> None:
        """Check that each failure is within the measured time, and none of a node that is to be down."""
        by_target: dict[str, list[ScriptedFailure]] = defaultdict(list)
        for failure in self.script:
            if failure.at >= self.duration:
                raise ValueError(
                    f"script: a failure at {failure.at:g} s; the duration is {self.duration:g} s"
                )
            by_target[self.target_of(failure)].append(failure)
        for target, failures in by_target.items():
            for earlier, later in pairwise(sorted(failures, key=lambda failure: failure.at)):
                if later.at <= (over := earlier.at + (earlier.for_ or 0.0)):
                    raise ValueError(
                        f"script: {target} fails at {later.at:g} s, and its failure before that lasts until {over:g} s"
                    )

    def fault_of(self, failure: ScriptedFailure) -> FaultName:
        """Return what happens in a failure of the script."""
        return failure.fault or self.fault

    def target_of(self, failure: ScriptedFailure) -> str:
        """Return whose node fails."""
        return failure.target or self.targets[0]

    @property
    def faults(self) -> frozenset[FaultName]:
        """The faults that may happen."""
        if self.mttf:
            return frozenset({self.fault})
        return frozenset(self.fault_of(failure) for failure in self.script)

    @property
    def source(self) -> Literal["script", "laws", "none"]:
        """Where the failures come from; with none of both, only what happens by itself is measured."""
        return "script" if self.script else "laws" if self.mttf else "none"


def _check_repair(fault: FaultName, has_length: bool, key: str) -> None:  # noqa: FBT001 - what is checked
    if has_length and len(FAULTS[fault]) == 1:
        raise ValueError(f"{key}: a {fault} has no repair that could wait; kill, crash and pause have")
    if not has_length and fault == "pause":
        raise ValueError(f"{key} is missing: how long the pause lasts")
