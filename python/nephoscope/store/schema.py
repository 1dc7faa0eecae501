"""The schema of a run directory's files, on which every reader of a stored run relies.

A run may come from somebody else. Content that no run writes is refused here, with its file and its place, so that
readers need no checks of their own.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nephoscope.scoring.prices import PriceBook
from nephoscope.settings.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping


MOST_SECONDS = 1e9
"""No run takes so long: three decades."""
MOST_NUMBER = 1e19
"""No number of a run is larger (a seed has 63 bits), and none but 0 is smaller than its reciprocal."""
MOST_COUNT = 2**53
MOST_TEXT = 2**20
"""Characters of a text."""
MOST_NAME = 1024
"""Characters of a name in a table."""
MOST_NAMES = 5000
"""Different names in a column of a table."""
MOST_DEPTH = 32
"""Levels of nested tables and lists."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Refused(ValueError):  # noqa: N818 - what it says is for an InputError
    """A file holds what no run writes; the message says where and why."""


# --- JSON -------------------------------------------------------------------------------------------------------


def parsed(text: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Parse JSON that any program may have written. Raises ``ValueError``, and of it `Refused` for too much."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise Refused(f"it is nested deeper than {MOST_DEPTH} levels") from None
    check_plain(value)
    return value


def check_plain(value: object) -> None:
    """Refuse numbers that are not finite or too large, texts that are too long, and too deep nesting."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner: list[object] = []
        for one in level:
            if isinstance(one, str):
                _check_text(one)
            elif isinstance(one, dict):
                for key in one:
                    _check_text(key)
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, int | float) and not _is_measured(one):
                raise Refused(f"{str(one)[:20]} is no number that is measured")
        if not inner:
            return
        level = inner
    raise Refused(f"it is nested deeper than {MOST_DEPTH} levels")


def _check_text(text: str) -> None:
    if len(text) > MOST_TEXT:
        raise Refused(f"a text has more than {MOST_TEXT:,} characters")
    if _SURROGATE.search(text):
        raise Refused("a text holds half of a surrogate pair")


def _is_measured(number: float) -> bool:
    return number == 0 or 1 / MOST_NUMBER <= abs(number) <= MOST_NUMBER


class _Table(BaseModel):
    """Known keys have types; others are accepted, because third parties may add keys."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


Name = Annotated[str, Field(max_length=MOST_NAME)]
Count = Annotated[int, Field(ge=0, le=MOST_COUNT)]
Time = Annotated[float, Field(ge=-MOST_SECONDS, le=MOST_SECONDS)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Repetition = Annotated[int, Field(ge=1, le=MOST_COUNT)]
Level = Annotated[float, Field(ge=0)]


# --- manifest.json ----------------------------------------------------------------------------------------------


class _Limit(_Table):
    percentile: Annotated[float, Field(gt=0, lt=100)]
    seconds: Seconds


class _Transaction(_Table):
    name: Name
    read_only: bool
    limits: Annotated[list[_Limit], Field(max_length=MOST_NAMES)] = Field(default_factory=list)


class _Rate(_Table):
    name: Name
    transaction: Name
    per: Literal["second", "minute", "hour"]
    pauses: bool


class _Mix(_Table):
    name: Name
    weights: dict[Name, Annotated[float, Field(ge=0)]]
    at_least: dict[Name, Annotated[float, Field(ge=0, le=100)]] = Field(default_factory=dict)
    rate: _Rate | None = None
    access: Name | None = None


class Described(_Table):
    """What scores and report need to know of a workload."""

    name: Name
    dialect: Name = ""
    blocking: bool = False
    transactions: Annotated[list[_Transaction], Field(min_length=1, max_length=MOST_NAMES)]
    mixes: Annotated[list[_Mix], Field(max_length=MOST_NAMES)]


class _Prices(_Table):
    price_book: PriceBook
    starred: PriceBook | None = None


class _Inputs(_Table):
    workload: Described
    prices: _Prices


class _Clock(_Table):
    origin: Name = ""
    finished: Name = ""


class _Workload(_Table):
    name: Name = ""
    scale: Annotated[float, Field(gt=0)] = 1.0
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)


class _Load(_Table):
    threads: Count = 1
    sessions: Count | None = None
    sessions_per_thread: Count | None = None
    cpus: list[Count] = Field(default_factory=list)
    interval_s: Seconds = 1.0
    statement_mode: Name = ""
    pipeline: bool = False
    io: Name = ""


class _Tenant(_Table):
    name: Name
    rw: list[str] = Field(default_factory=list)
    ro: list[str] = Field(default_factory=list)
    resources: Resources | None = None


class _Tenants(_Table):
    share: Literal["schema", "database", "server"] = "schema"
    each: Annotated[list[_Tenant], Field(max_length=MOST_NAMES)] = Field(default_factory=list)


class _System(_Table):
    provider: Name = ""
    endpoints: dict[str, list[str]] = Field(default_factory=dict)
    resources: Resources | None = None
    facts: dict[str, Any] = Field(default_factory=dict)
    tenants: _Tenants = Field(default_factory=_Tenants)


class Manifest(_Table):
    """``manifest.json``."""

    format: Annotated[int, Field(ge=1)]
    status: Literal["running", "measured", "failed", "interrupted", "killed"]
    reason: str | None = None
    nephoscope: Name = ""
    study: Name = ""
    seed: int = 0
    clock: _Clock = Field(default_factory=_Clock)
    host: dict[str, Any] = Field(default_factory=dict)
    workload: _Workload = Field(default_factory=_Workload)
    load: _Load = Field(default_factory=_Load)
    system: _System = Field(default_factory=_System)
    inputs: _Inputs | None = None
    totals: dict[str, Count] | None = None

    @field_validator("totals")
    @classmethod
    def _of_what_was_started(cls, totals: dict[str, int] | None) -> dict[str, int] | None:
        if totals and "started" not in totals:
            raise ValueError("it does not tell how many transactions were started")
        return totals


# --- events.jsonl -----------------------------------------------------------------------------------------------


class _Labels(_Table):
    """The labels of a phase that every reader knows; one that is there has a value."""

    measure: int = 0
    repetition: Repetition = 1
    planned_s: Seconds = 0.0
    mix: Name | None = None
    of_mix: Name = ""
    pattern: Name = ""
    load: Name = ""
    alone: Name = ""
    role: Name = ""
    think: Name = ""
    concurrency: Level | None = None
    rate: Level | None = None
    nodes: Count = 0
    place: Count = 0
    slot: Count = 0
    tau: Count = 0
    search: bool = False
    sessions: Count | Annotated[str, Field(pattern=r"^[0-9]{1,9}( \+ [0-9]{1,9})*$")] = 0


class _Event(_Table):
    time_s: Time
    event: Name


class _Moving(_Table):
    # "from" is a word of Python's.
    from_: Annotated[Level, Field(alias="from")]
    to: Level
    seconds: Seconds


class _Asked(_Table):
    """What is asked of a load; what is left out stays."""

    concurrency: Level | _Moving | None = None
    rate: Level | _Moving | None = None
    mix: dict[Name, Level] | None = None
    access: dict[Name, Name | Level] | None = None
    transition_s: Seconds | None = None


class _Phase(_Event):
    phase: Annotated[int, Field(ge=0, lt=2**31)]
    name: Name
    kind: Name
    labels: _Labels = Field(default_factory=_Labels)
    loads: dict[Name, _Asked] = Field(default_factory=dict)


class _Steered(_Event):
    tenant: Name
    load: _Asked


class _Error(_Event):
    # "class" is a word of Python's.
    class_: Annotated[Name, Field(alias="class")]
    code: Name | None = None
    message: str | None = None
    transaction: Name | None = None
    tenant: Name | None = None
    role: Name | None = None
    count: Count


class _Counted(_Event):
    count: Count = 1
    state: Name | None = None
    tenant: Name | None = None


class _Woken(_Event):
    phase: Count
    waited_s: Seconds


class _Said(_Event):
    message: str


class _Acted(_Event):
    measure: int | None = None
    repetition: Repetition | None = None
    action: Name | None = None
    node: Name | None = None
    took_s: Seconds | None = None


class _Durability(_Event):
    acknowledged: Count
    lost: Count
    indeterminate: Count


class _PlannedFailure(_Table):
    target: Name
    for_s: Seconds | None = None


class _Schedule(_Acted):
    nodes: Count
    planned: Annotated[list[_PlannedFailure], Field(max_length=MOST_NAMES)]


class _Scaling(_Acted):
    nodes: Count
    took_s: Seconds
    routed_s: Time | None = None
    reached_s: Time | None = None
    serve_s: Seconds | None = None
    moved_bytes: Count | None = None


class _Setting(_Acted):
    parameter: Name
    place: Count | None = None
    held: bool | int | float | str | None = None
    before: bool | int | float | str | None = None


class _Anomaly(_Table):
    anomaly: Name
    order: Literal["none", "session", "real-time"]
    times: Count
    about: Name = ""
    forbidden_from: Name


class _Party(_Table):
    number: Count
    session: Count
    begin_s: Time
    end_s: Time


class _Step(_Table):
    kind: Name
    key: int | None = None


class _Witness(_Table):
    anomaly: Name
    order: Name
    told: str
    transactions: Annotated[list[_Party], Field(max_length=MOST_NAMES)]
    steps: Annotated[list[_Step], Field(max_length=MOST_NAMES)]


class _History(_Event):
    tenant: Name
    from_s: Time
    to_s: Time
    committed: Count
    aborted: Count
    unknown: Count
    operations: Count
    anomalies: Annotated[list[_Anomaly], Field(max_length=MOST_NAMES)]
    witnesses: Annotated[list[_Witness], Field(max_length=MOST_NAMES)]
    late: Count
    forced: Count
    unordered: Count
    strongest: Name | None
    broken: str | None
    unwritten: str | None
    file: Name


class _Allocation(_Event):
    resources: Resources
    answered_s: Time | None = None


_EVENTS: Mapping[str, type[_Event]] = {
    "phase": _Phase,
    "steered": _Steered,
    "error": _Error,
    "connection": _Counted,
    "dropped": _Counted,
    "woken": _Woken,
    "warning": _Said,
    "gap": _Said,
    "unsupported": _Said,
    "fault_failed": _Said,
    "action_failed": _Said,
    "fault": _Acted,
    "action": _Acted,
    "durability": _Durability,
    "schedule": _Schedule,
    "scaling": _Scaling,
    "setting": _Setting,
    "allocation": _Allocation,
    "history": _History,
}
"""The events that nephoscope itself reads; others, of third parties' evaluators, have a time and a name."""


def check_event(event: object) -> None:
    """Refuse what is no event as a run writes it."""
    if not isinstance(event, dict):
        raise Refused("it is no table")
    check_plain(event)
    kind = event.get("event")
    validate(_EVENTS.get(kind, _Event) if isinstance(kind, str) else _Event, event)


def validate(model: type[BaseModel], table: object) -> None:
    """Refuse a table that is not as a model says."""
    try:
        model.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{place[:80]}: {first['msg'][:200]}" if place else first["msg"][:200]) from None


def is_time(value: object) -> bool:
    """Tell whether a value is a time of a run, in seconds."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= MOST_SECONDS
    )
