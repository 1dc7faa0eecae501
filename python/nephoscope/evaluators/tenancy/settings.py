"""The settings of tenancy in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.evaluators.search import SearchSettings
from nephoscope.evaluators.tenancy.patterns import PATTERNS, PatternName
from nephoscope.settings.loads import MOST_CONCURRENCY, AccessSetting, MixSetting
from nephoscope.settings.registered import MeasureSettings
from nephoscope.settings.units import Duration, one_as_list

if TYPE_CHECKING:
    from typing import Self


_Sessions = Annotated[int, Field(ge=0, le=MOST_CONCURRENCY)]


class TenancySettings(MeasureSettings):
    """An entry of ``[[measure]]`` with ``evaluator = "tenancy"``."""

    evaluator: Literal["tenancy"] = "tenancy"
    mix: MixSetting = "RW"
    """Which transactions run: see [mixes](#mixes)."""
    patterns: Annotated[list[PatternName], BeforeValidator(one_as_list)] = Field(default=list(PATTERNS))
    """The patterns that are gone through: see [patterns](#patterns-of-tenancy)."""
    saturation: Literal["search"] | Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)] | None = None
    """τ, the concurrency at which the system reaches its limit, or ``"search"``: it is searched for with the first
    tenant, as far as the server has room for all patterns; the paper's 330 and 100 sessions if left out."""
    search: SearchSettings = Field(default_factory=SearchSettings)
    """How saturation is searched for: see [search](#measuresearch)."""
    custom: dict[
        str, Annotated[list[Annotated[list[_Sessions], Field(min_length=1)]], Field(min_length=1)]
    ] = Field(default_factory=dict)
    """Patterns of one's own: a list for each tenant, of its sessions in each slot."""
    slot: Duration = 60.0
    """How long a slot lasts."""
    warmup: Duration = 5.0
    """How long the load of the first slot runs before it counts, and that of a tenant alone."""
    alone: bool = True
    """Whether each tenant is also measured alone, at its concurrency beside others, for the interference."""
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often all patterns are gone through."""
    access: AccessSetting | None = None
    """Which keys transactions touch: see [access distributions](#access-distributions). The mix's own if left out."""

    @field_validator("custom")
    @classmethod
    def _rectangular(cls, custom: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        for name, pattern in custom.items():
            if name in PATTERNS:
                raise ValueError(f"{name} is the name of a pattern that there is already")
            if len({len(tenant) for tenant in pattern}) > 1:
                raise ValueError(f"every tenant of {name} needs the same number of slots")
            if not any(map(sum, pattern)):
                raise ValueError(f"nobody has a session in {name}")
        return custom

    @model_validator(mode="after")
    def _has_patterns(self) -> Self:
        if not self.patterns and not self.custom:
            raise ValueError("it needs at least one pattern")
        if len(set(self.patterns)) < len(self.patterns):
            raise ValueError("a pattern is there twice; repetitions say how often each is measured")
        if self.slot <= 0:
            raise ValueError("a slot needs a length above 0")
        return self
