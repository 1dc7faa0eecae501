"""Studies: what a user writes. A study is a TOML file; the models here say what it may hold.

Reading a study touches nothing but the file. What is wrong with it is said with its key, its value and what is
allowed, as one ``InputError``.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from nephoscope import _engine, registry
from nephoscope.errors import InputError
from nephoscope.masking import masked
from nephoscope.scoring.definitions import PerfectName
from nephoscope.scoring.offers import Usage
from nephoscope.scoring.prices import DEFAULT_PRICE_BOOK
from nephoscope.settings.base import Settings
from nephoscope.settings.loads import ACCESS_WORDS, Isolation
from nephoscope.settings.registered import MeasureSettings, OwnSystemSettings, Scales, SystemSettings
from nephoscope.settings.retries import RetrySetting
from nephoscope.settings.tenants import TenantsTable
from nephoscope.settings.units import Duration, one_as_list
from nephoscope.settings.validation import given, one_of, validated
from nephoscope.settings.variables import redacted_url
from nephoscope.study.factors import ExperimentTable, FactorTable, experiment_faults, factors_of
from nephoscope.study.overrides import read_tables
from nephoscope.study.references import ReferenceTable, reference_faults, references_of
from nephoscope.study.services import over_service, service_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope.study.borrowed import Given


class StudyTable(Settings):
    """``[study]``: what the study is called, and the seed of everything that is drawn."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
    """The name of its runs: letters, digits, ``_``, ``.`` and ``-``, at most 80."""
    description: str = ""
    """A sentence for the report."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The seed of the load: of picked keys, of arrivals, of the order of transactions."""
    tuned: bool | None = None
    """Whether the server's settings were chosen for this workload. Left out, it is where the study sets any
    (`system.settings`, `load.on_connect`). A [board](cards.md#boards) ranks what is tuned only beside what is not."""


class WorkloadTable(Settings):
    """``[workload]``: what is run, and the data it runs on."""

    name: str = "sales"
    """The name of a workload that comes with nephoscope, the folder of one's own, or [files of another
    tool](coming-from.md): `"shop.sql"`, `"pgbench:reads.sql@9,writes.sql"`."""
    scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """The scale factor, which decides how many rows the workload's tables have."""
    scales: Scales | None = None
    """In place of `scale`, several: `nephoscope run` makes a [run of each](#several-scale-factors) in turn."""
    data_seed: Annotated[int, Field(ge=0, lt=2**63)] = 7
    """The seed of the data: the same seed, scale and options give the same rows."""
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)
    """The workload's own options; ``nephoscope workloads NAME`` lists them."""
    external: bool = False
    """Whether the tables were made by another tool, such as pgbench."""
    load: Literal["missing", "never", "always"] = "missing"
    """Whether ``nephoscope run`` loads the data: where it is missing, never, or anew each time. In the cache of an
    embedded system, data of another scale, seed or options makes room; elsewhere, `system.data` included, it is never
    replaced unasked."""
    load_threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads that load; 0 is one per core, and a single one for SQLite, which has one writer at a time."""
    prewarm: bool = False
    """Whether each endpoint reads the tables whole before the load begins, by the section
    [`prewarm`](workloads.md#the-schema) of the workload's schema."""


_TIME_LIMITS = {
    "connect_timeout": (0.001, 3600.0, "from 1ms to 1h"),
    "statement_timeout": (0.001, 86400.0, "from 1ms to 24h"),
    "drain_timeout": (0.0, 3600.0, "from 0 to 1h"),
}
"""The shortest and the longest, in seconds, as the engine takes them."""


class LoadTable(Settings):
    """``[load]``: how transactions are run, whatever is measured."""

    service: Annotated[str, one_of("a service", service_names)] | None = None
    """A [service](systems.md#services) whose settings take the place of the defaults below."""
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads that produce load; sessions are spread over them."""
    cpus: list[Annotated[int, Field(ge=0, lt=1024)]] = Field(default_factory=list)
    """Processors that the threads are pinned to, one after the other; they are not pinned if left out."""
    interval: Duration = 1.0
    """The length of an interval of the stored run, from 50ms to 1h."""
    statement_mode: Literal["simple", "extended", "prepared"] = "prepared"
    """How statements are sent, as pgbench's ``-M``: as text, parsed each time, or prepared once a connection."""
    pipeline: bool = False
    """Whether a statement without a wanted result is sent with the next, where the workload says so. A transaction
    [may do so in any case](workloads.md#sending-statements-together)."""
    isolation: Isolation | None = None
    """The isolation level of every session; the server's default if left out."""
    consistency: str | None = None
    """The [consistency level](systems.md#consistency-levels) of every session; the system's default if left out."""
    connect_timeout: Duration = 10.0
    """The timeout for making a connection."""
    statement_timeout: Duration = 30.0
    """The timeout of a reply; then the statement is cancelled."""
    drain_timeout: Duration = 5.0
    """The timeout for transactions in flight at the end."""
    retry: RetrySetting = Field(default_factory=RetrySetting)
    """How transactions are retried: see [load.retry](#loadretry)."""
    on_connect: Annotated[list[str], BeforeValidator(one_as_list)] = Field(default_factory=list)
    """SQL that each session of the load runs first, in this order; ``${NAME}`` is a variable of the environment."""
    balance: Literal["round-robin", "random", "first"] = "round-robin"
    """Which of several endpoints of a role a session takes; where that one refuses, the next."""
    reads: Literal["auto", "rw", "ro", "all"] = "auto"
    """Where read-only transactions run: ``auto`` is ro where the system has such an endpoint; with ``all`` each session
    reads on an endpoint of either role, by `writer_weight`. Scale-out has its own key."""
    writer_weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """With ``all``: how many sessions read on an endpoint that takes writes for each on a read-only one."""
    io: Literal["auto", "uring", "epoll"] = "auto"
    """How threads wait for sockets: ``auto`` is io_uring where the kernel allows it, else epoll."""
    sessions: Annotated[int, Field(ge=1, le=100_000)] = 64
    """Sessions of an open load (a rate); a closed one has as many as its concurrency."""
    backlog: Annotated[int, Field(ge=0, le=100_000_000)] = 100_000
    """The most arrivals that wait for a session; further ones are dropped and counted."""

    @model_validator(mode="before")
    @classmethod
    def _over_service(cls, table: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
        return over_service(table) if isinstance(table, dict) else table

    @field_validator("interval")
    @classmethod
    def _interval(cls, seconds: float) -> float:
        if not 0.05 <= seconds <= 3600:  # noqa: PLR2004
            raise ValueError("an interval must be from 50ms to 1h")
        return seconds

    @field_validator("connect_timeout", "statement_timeout", "drain_timeout")
    @classmethod
    def _timeout(cls, seconds: float, info: ValidationInfo) -> float:
        least, most, allowed = _TIME_LIMITS[str(info.field_name)]
        if not least <= seconds <= most:
            raise ValueError(f"a time limit must be {allowed}: no wait is without one")
        return seconds


class CostTable(Settings):
    """``[cost]``: what the resources cost."""

    price_book: str = DEFAULT_PRICE_BOOK
    """The name of a price book that comes with nephoscope, or the path of one's own."""
    starred: str | None = None
    """A second price book, of the prices that are really paid: by it P*, E1*, T* and O* are scored."""
    held: Duration | None = None
    """How long the resources are held, for the minimum billing periods of P* and T*; by default as long as the run."""
    usage: Usage = Field(default_factory=Usage)
    """The use of what a vendor's book charges by use: see [cost.usage](#costusage)."""

    @field_validator("held")
    @classmethod
    def _some_time(cls, seconds: float | None) -> float | None:
        if seconds == 0:
            raise ValueError("resources that cost something are held for longer than 0")
        return seconds


class ScoreTable(Settings):
    """``[score]``: how the O-Score is made of the seven."""

    weights: dict[PerfectName, Annotated[float, Field(ge=0, le=100)]] = Field(default_factory=dict)
    """The exponents of the scores in O; 1 where left out, and 0 takes a score out of it."""
    beside_paper: bool = False
    """Whether the report says which figures may be set [beside the paper's](metrics.md#beside-the-papers-tables)."""


class Study(BaseModel):
    """A study, validated and resolved: every default is written out."""

    model_config = Settings.model_config

    study: StudyTable
    system: SystemSettings
    tenants: TenantsTable
    workload: WorkloadTable
    load: LoadTable
    measure: tuple[MeasureSettings, ...]
    cost: CostTable
    score: ScoreTable
    factor: tuple[FactorTable, ...] = ()
    """What `nephoscope experiment` varies; a stored run has none."""
    experiment: ExperimentTable | None = None
    reference: tuple[ReferenceTable, ...] = ()
    """What an experiment is drawn beside."""
    words: tuple[str, ...] = ("STUDY",)
    """How a command line names this study: its name and what is set, without passwords."""

    def command(self, name: str) -> str:
        """Write a command on this study, for messages."""
        return shlex.join(["nephoscope", name, *self.words])

    def to_toml(self) -> str:
        """Write the study as TOML, without the passwords of its URLs: ``${NAME}`` stays, as it gives none away.

        Secrets that are known are masked in its SQL and its commands too.
        """
        tables: dict[str, Any] = {
            name: _plain(getattr(self, name))
            for name in ("study", "system", "tenants", "workload", "load", "cost", "score")
        }
        for server in (tables["system"], *tables["tenants"]["servers"]):
            for role in ("rw", "ro"):
                if role in server:
                    given = server[role]
                    # Of a provider that others have made it may be a single one.
                    server[role] = (
                        redacted_url(given)
                        if isinstance(given, str)
                        else [redacted_url(url) for url in given]
                    )
        tables["load"]["on_connect"] = [masked(sql) for sql in self.load.on_connect]
        for name, command in tables["system"].get("hooks", {}).items():
            if isinstance(command, str):
                tables["system"]["hooks"][name] = masked(command)
        tables["measure"] = [_plain(entry) for entry in self.measure]
        return tomli_w.dumps(tables)


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True, by_alias=True)


def read_study(
    path: Path | None, overrides: Sequence[str] = (), name: str | None = None, given: Given | None = None
) -> Study:
    """Read a study from a file, with ``key=value`` put over it; ``name`` is how the command line named it.

    ``given`` is what else the command line says. Without a file the study is the one load that it asks for.
    Raises ``InputError``.
    """
    study = make_study(read_tables(path, overrides, given), "the command line" if path is None else str(path))
    if name is None and given is None:
        return study
    settings = [word for override in overrides for word in ("--set", override)]
    words = [*([name] if name else []), *(given.words if given else []), *settings]
    return study.model_copy(update={"words": tuple(map(_engine.redact, words))})


_TABLES: dict[str, type[Settings]] = {
    "study": StudyTable,
    "tenants": TenantsTable,
    "workload": WorkloadTable,
    "load": LoadTable,
    "cost": CostTable,
    "score": ScoreTable,
}


def make_study(tables: Mapping[str, Any], where: str) -> Study:
    """Validate the tables of a study; ``where`` is the file's name for messages.

    Raises ``InputError`` that lists everything that is wrong.
    """
    faults: list[str] = []
    known = (*_TABLES, "system", "measure", "factor", "experiment", "reference")
    faults += [
        f"{key}: there is no such table; tables are {', '.join(known)}" for key in tables if key not in known
    ]
    made: dict[str, Any] = {
        name: validated(model, tables.get(name, {}), name, faults, ACCESS_WORDS)
        for name, model in _TABLES.items()
    }
    made["system"] = _system(tables.get("system", {}), faults)
    made["measure"] = _measure(tables.get("measure", []), faults)
    faults += scale_faults(made["workload"], made["measure"])
    made |= _experiment(tables, faults)
    if faults:
        raise InputError("\n".join(f"{where}: {fault}" for fault in faults))
    if isinstance(system := made["system"], OwnSystemSettings):
        made["system"] = system.of_workload(made["workload"].name)
    return Study.model_construct(**made)


def _experiment(tables: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    """Read what a designed experiment adds to a study; nothing where it is none."""
    if "factor" not in tables:
        faults += [
            f"{name}: it needs at least one [[factor]]"
            for name in ("experiment", "reference")
            if name in tables
        ]
        return {}
    before = len(faults)
    factors = factors_of(tables["factor"], faults)
    table = validated(ExperimentTable, tables.get("experiment", {}), "experiment", faults)
    references = references_of(tables.get("reference", []), faults)
    if table is not None and len(faults) == before:
        faults += experiment_faults(factors, table)
        faults += reference_faults(references, factors, table)
    return {"factor": factors, "experiment": table, "reference": references}


def scale_faults(workload: WorkloadTable | None, entries: Sequence[MeasureSettings]) -> list[str]:
    """Tell what is wrong with the scale factors of a study; ``workload`` is None where it is wrong itself."""
    if workload is None:
        return []
    if (scales := workload.scales) is None:
        return [
            f"measure.{index}.scales: workload.scales does not say which scale factors there are"
            for index, entry in enumerate(entries)
            if entry.scales is not None
        ]
    faults = [
        f"measure.{index}.scales: {scale:g} is not among workload.scales"
        for index, entry in enumerate(entries)
        for scale in entry.scales or ()
        if scale not in scales
    ]
    if workload.load != "always" or workload.external:
        faults.append(
            'workload.scales: each loads its own data, which needs load = "always" and external = false'
        )
    idle = [scale for scale in scales if all(entry.scales and scale not in entry.scales for entry in entries)]
    return faults + [f"workload.scales: nothing is measured at {scale:g}" for scale in idle if entries]


def _system(table: Any, faults: list[str]) -> SystemSettings | None:  # noqa: ANN401 - whatever TOML can hold
    names = registry.names("systems")
    name = table.get("provider") if isinstance(table, dict) else None
    if name not in names:
        faults.append(f"system.provider: {given(name)}; providers are {', '.join(names)}")
        return None
    return validated(registry.load("systems", name).settings_type, table, "system", faults, ACCESS_WORDS)


def _measure(entries: Any, faults: list[str]) -> tuple[MeasureSettings, ...]:  # noqa: ANN401
    if not isinstance(entries, list) or not entries:
        faults.append("measure: a study measures something: it needs at least one [[measure]]")
        return ()
    names = registry.names("evaluators")
    made = []
    for index, table in enumerate(entries):
        name = table.get("evaluator") if isinstance(table, dict) else None
        if name not in names:
            faults.append(f"measure.{index}.evaluator: {given(name)}; evaluators are {', '.join(names)}")
            continue
        settings = registry.load("evaluators", name).settings_type
        if entry := validated(settings, table, f"measure.{index}", faults, ACCESS_WORDS):
            made.append(entry)
    return tuple(made)
