"""Studies: what a user writes. A study is a TOML file; the models here say what it may hold.

Reading a study touches nothing but the file. What is wrong with it is said with its key, its value and what is
allowed, as one ``InputError``.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator

from nephoscope import registry
from nephoscope.errors import InputError
from nephoscope.price_book import DEFAULT_PRICE_BOOK
from nephoscope.systems.base import Settings, SystemSettings
from nephoscope.units import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class StudyTable(Settings):
    """``[study]``: what the study is called, and the seed of everything that is drawn."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1


class WorkloadTable(Settings):
    """``[workload]``: what is run, and the data it runs on."""

    name: str = "sales"
    """The name of a workload that comes with nephoscope, or the folder of one's own."""
    scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    data_seed: Annotated[int, Field(ge=0, lt=2**63)] = 7
    options: dict[str, str | bool | int | float] = Field(default_factory=dict)
    external: bool = False
    """The tables are there already and were made by something else (pgbench's, say)."""
    load: Literal["missing", "never", "always"] = "missing"
    """Whether ``nephoscope run`` loads the data: where it is missing, never, or anew each time."""
    load_threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads that load; 0 is one per core."""


class RetryTable(Settings):
    """``[load.retry]``: how transactions are tried again after an error that allows it."""

    attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    backoff: Duration = 0.005
    backoff_max: Duration = 0.2


Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]


class LoadTable(Settings):
    """``[load]``: how transactions are run, whatever is measured."""

    threads: Annotated[int, Field(ge=1, le=256)] = 1
    interval: Duration = 1.0
    statement_mode: Literal["simple", "extended", "prepared"] = "prepared"
    pipeline: bool = False
    """Whether statements whose result is not wanted ride with the next, where the workload says so."""
    isolation: Isolation | None = None
    """The isolation level of every session; the server's default if left out."""
    connect_timeout: Duration = 10.0
    statement_timeout: Duration = 30.0
    drain_timeout: Duration = 5.0
    retry: RetryTable = Field(default_factory=RetryTable)
    on_connect: list[str] = Field(default_factory=list)
    balance: Literal["round-robin", "random", "first"] = "round-robin"
    reads: Literal["auto", "rw", "ro"] = "auto"
    """Where transactions run that only read: ``auto`` is on ro where the system has such an endpoint."""
    sessions: Annotated[int, Field(ge=1, le=100_000)] = 64
    """Sessions of an open load (a rate); a closed one has as many as its concurrency."""
    backlog: Annotated[int, Field(ge=0, le=100_000_000)] = 100_000
    """Arrivals that may wait for a session; what comes beyond is dropped, and counted."""

    @field_validator("interval")
    @classmethod
    def _interval(cls, seconds: float) -> float:
        if not 0.05 <= seconds <= 3600:  # noqa: PLR2004
            raise ValueError("an interval must be from 50ms to 1h")
        return seconds

    @field_validator("connect_timeout", "statement_timeout")
    @classmethod
    def _timeout(cls, seconds: float) -> float:
        if seconds < 0.001:  # noqa: PLR2004
            raise ValueError("a time limit must be 1ms or more: no wait is without one")
        return seconds


class CostTable(Settings):
    """``[cost]``: what the resources cost."""

    price_book: str = DEFAULT_PRICE_BOOK
    """The name of a price book that comes with nephoscope, or the path of one's own."""


# --- loads, as evaluators' tables hold them -------------------------------------------------------------


class RampSetting(Settings):
    """A level that moves in a straight line."""

    from_: Annotated[float, Field(ge=0, alias="from")]
    to: Annotated[float, Field(ge=0)]
    over: Duration | None = None
    """How long it moves; the whole phase if left out."""


Level = Annotated[float, Field(ge=0)] | RampSetting


class ThinkSetting(Settings):
    """The pause of a session between two transactions."""

    law: Literal["constant", "exponential"] = "constant"
    time: Duration


def _think(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    return {"time": value} if isinstance(value, str | int | float) else value


Think = Annotated[ThinkSetting, BeforeValidator(_think)]


class UniformAccess(Settings):
    """Every key alike."""

    distribution: Literal["uniform"] = "uniform"


class LatestAccess(Settings):
    """The ``k`` newest keys alike."""

    distribution: Literal["latest"] = "latest"
    k: Annotated[int, Field(ge=1)]


class ZipfianAccess(Settings):
    """The i-th most popular key in proportion to 1/i**theta."""

    distribution: Literal["zipfian"] = "zipfian"
    theta: Annotated[float, Field(ge=0, le=10)] = 0.99


class HotspotAccess(Settings):
    """A share of the keys gets a share of the accesses."""

    distribution: Literal["hotspot"] = "hotspot"
    keys: Annotated[float, Field(ge=0, le=1)] = 0.2
    accesses: Annotated[float, Field(ge=0, le=1)] = 0.8


_ACCESS_WORDS = {
    "uniform": re.compile(r"uniform"),
    "latest": re.compile(r"latest-(?P<k>\d+)"),
    "zipfian": re.compile(r"zipfian(-(?P<theta>\d+(\.\d+)?))?"),
    "hotspot": re.compile(r"hotspot(-(?P<keys>\d+(\.\d+)?)-(?P<accesses>\d+(\.\d+)?))?"),
}


def _access(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """Read the short form of an access distribution: ``uniform``, ``latest-10``, ``zipfian-0.99`` and so on."""
    if not isinstance(value, str):
        return value
    for distribution, pattern in _ACCESS_WORDS.items():
        if found := pattern.fullmatch(value):
            given = {key: number for key, number in found.groupdict().items() if number is not None}
            return {"distribution": distribution, **given}
    raise ValueError(
        'expected uniform, latest-10, zipfian-0.99, hotspot-0.2-0.8, or a table with "distribution"'
    )


AccessSetting = Annotated[
    Annotated[
        UniformAccess | LatestAccess | ZipfianAccess | HotspotAccess, Field(discriminator="distribution")
    ],
    BeforeValidator(_access),
]

MixSetting = str | dict[str, Annotated[float, Field(ge=0)]]
"""The name of a workload's mix, a ratio such as ``15:5:80`` in the order of its transactions, or weights."""


# --- the whole ------------------------------------------------------------------------------------------


class MeasureSettings(Settings):
    """An entry of ``[[measure]]``; each evaluator adds its own keys."""

    evaluator: str


class Study(BaseModel):
    """A study, validated and resolved: every default is written out."""

    model_config = Settings.model_config

    study: StudyTable
    system: SystemSettings
    workload: WorkloadTable
    load: LoadTable
    measure: tuple[MeasureSettings, ...]
    cost: CostTable

    def to_toml(self, redact: Mapping[str, str] | None = None) -> str:
        """Write the study as TOML; ``redact`` replaces texts that must not be kept, such as passwords."""
        tables: dict[str, Any] = {
            name: _plain(getattr(self, name)) for name in ("study", "system", "workload", "load", "cost")
        }
        tables["measure"] = [_plain(entry) for entry in self.measure]
        text = tomli_w.dumps(tables)
        for secret, shown in (redact or {}).items():
            text = text.replace(secret, shown)
        return text


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True, by_alias=True)


def read_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """Read a study from a file, with ``key=value`` put over it.

    Raises ``InputError``.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    try:
        tables = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this is not TOML: {error}") from None
    for override in overrides:
        _override(tables, override)
    _relative_to(path.parent, tables)
    return make_study(tables, str(path))


def _relative_to(folder: Path, tables: dict[str, Any]) -> None:
    """Paths in a study are relative to its file: it should mean the same wherever it is run from."""
    for table, key in (("workload", "name"), ("cost", "price_book")):
        value = tables.get(table, {}).get(key) if isinstance(tables.get(table), dict) else None
        if isinstance(value, str) and ("/" in value or value.startswith(".")):
            tables[table][key] = str((folder / value).resolve())


def _override(tables: dict[str, Any], override: str) -> None:
    """Put one ``--set key=value`` into the tables. The value is TOML, or else a text."""
    key, equals, value = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise InputError(f"--set {override}: expected key=value, such as workload.scale=10")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    place: Any = tables
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if isinstance(place, list):
            if not part.isdigit() or int(part) >= len(place):
                have = f"0 to {len(place) - 1}" if place else "none"
                raise InputError(
                    f"--set {override}: {'.'.join(parts[:at])} has no entry {part}; it has {have}"
                )
            index = int(part)
            if last:
                place[index] = parsed
            place = place[index]
        elif isinstance(place, dict):
            if last:
                place[part] = parsed
            else:
                place = place.setdefault(part, {})
        else:
            raise InputError(f"--set {override}: {'.'.join(parts[:at])} is a value and has no {part}")


Model = TypeVar("Model", bound=BaseModel)

_TABLES: dict[str, type[Settings]] = {
    "study": StudyTable,
    "workload": WorkloadTable,
    "load": LoadTable,
    "cost": CostTable,
}


def make_study(tables: Mapping[str, Any], where: str) -> Study:
    """Validate the tables of a study; ``where`` is the file's name for messages.

    Raises ``InputError`` that lists everything that is wrong.
    """
    faults: list[str] = []
    known = (*_TABLES, "system", "measure")
    faults += [
        f"{key}: there is no such table; tables are {', '.join(known)}" for key in tables if key not in known
    ]
    made: dict[str, Any] = {
        name: _validated(model, tables.get(name, {}), name, faults) for name, model in _TABLES.items()
    }
    made["system"] = _system(tables.get("system", {}), faults)
    made["measure"] = _measure(tables.get("measure", []), faults)
    if faults:
        raise InputError("\n".join(f"{where}: {fault}" for fault in faults))
    return Study.model_construct(**made)


def _system(table: Any, faults: list[str]) -> SystemSettings | None:  # noqa: ANN401 - whatever TOML can hold
    names = registry.names("systems")
    name = table.get("provider") if isinstance(table, dict) else None
    if name not in names:
        given = "is missing" if name is None else f"is {name!r}"
        faults.append(f"system.provider: {given}; providers are {', '.join(names)}")
        return None
    return _validated(registry.provider(name).settings_type, table, "system", faults)


def _measure(entries: Any, faults: list[str]) -> tuple[MeasureSettings, ...]:  # noqa: ANN401
    if not isinstance(entries, list) or not entries:
        faults.append("measure: a study measures something: it needs at least one [[measure]]")
        return ()
    names = registry.names("evaluators")
    made = []
    for index, table in enumerate(entries):
        name = table.get("evaluator") if isinstance(table, dict) else None
        if name not in names:
            given = "is missing" if name is None else f"is {name!r}"
            faults.append(f"measure.{index}.evaluator: {given}; evaluators are {', '.join(names)}")
        elif entry := _validated(registry.evaluator(name).settings_type, table, f"measure.{index}", faults):
            made.append(entry)
    return tuple(made)


def _validated(
    model: type[Model],
    table: Any,  # noqa: ANN401 - whatever TOML can hold
    name: str,
    faults: list[str],
) -> Model | None:
    if not isinstance(table, dict):
        faults.append(f"{name}: expected a table")
        return None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        faults += [_fault(name, model, detail) for detail in error.errors(include_url=False)]
        return None


def _fault(table: str, model: type[BaseModel], detail: Mapping[str, Any]) -> str:
    """Say what is wrong: the key, the value, what is allowed."""
    # Tags of unions are no part of a key that a user wrote.
    parts = [str(part) for part in detail["loc"] if not _is_tag(part)]
    key = ".".join([table, *parts])
    value = detail.get("input")
    match detail["type"]:
        case "extra_forbidden":
            allowed = ", ".join(_keys(model, parts[:-1]))
            return f"{key}: there is no such key; allowed are {allowed}"
        case "missing":
            return f"{key}: it is missing"
        case _:
            message = detail["msg"].removeprefix("Value error, ")
            shown = _shown(value)
            return f"{key}: {message[0].lower()}{message[1:]}{f'; it is {shown}' if shown else ''}"


def _is_tag(part: str | int) -> bool:
    return isinstance(part, str) and (
        part in _ACCESS_WORDS or part in {"float", "str", "RampSetting"} or "[" in part
    )


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """List the keys that are allowed in the table at a path below a model."""
    for part in path:
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            break
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if found := _model_in(inner):
            return found
    return None


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever TOML can hold
    if isinstance(value, dict | list) or value is None:
        return ""
    text = repr(value)
    # A URL may hold a password.
    return "" if "://" in text else text


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def substitute(text: str, where: str) -> str:
    """Put environment variables in the places of ``${NAME}``: how secrets stay out of studies.

    Raises ``InputError`` for a variable that is not set.
    """

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in os.environ:
            raise InputError(f"{where}: the environment variable {name} is not set")
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def find_study(name: str) -> Path:
    """Find a study by its path, or by the name of one that comes with nephoscope.

    Raises ``InputError``.
    """
    path = Path(name)
    if path.is_file():
        return path
    packaged = Path(__file__).parent / "studies" / f"{name}.toml"
    if re.fullmatch(r"[a-z0-9-]+", name) and packaged.is_file():
        return packaged
    names = sorted(study.stem for study in packaged.parent.glob("*.toml"))
    raise InputError(f"{name}: there is no such file, and no such study; studies are {', '.join(names)}")
