"""The record of loaded data: the table ``nephoscope_data``, beside the workload's tables.

Others may have written to that table, so its content is validated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nephoscope.errors import MeasurementError
from nephoscope.settings.units import describe_value
from nephoscope.settings.validation import Model, faults_of

if TYPE_CHECKING:
    from nephoscope import _engine
    from nephoscope.dialects import Dialect

TABLE = "nephoscope_data"
_COLUMNS = ("workload", "identity", "state", "detail")
CREATE = f"""CREATE TABLE {TABLE} (
  workload varchar(80) PRIMARY KEY,
  identity {{text}} NOT NULL,
  state varchar(10) NOT NULL,
  detail {{text}} NOT NULL
)"""
"""``{text}`` is the dialect's type of long texts."""

BOOK_S = 20.0
"""The timeout for reading and writing the record, in s: a server that hangs, or waits for a replica, must not delay a
run's end."""

State = Literal["loading", "loaded"]
Made = tuple[str, str, str]
"""An object of the database: its kind, its id, its qualified name."""
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Part(BaseModel):
    """A part of the record, in JSON. Keys of later versions are kept."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class Identity(_Part):
    """Which data it is."""

    scale: Annotated[float, Field(gt=0)]
    seed: _Count
    options: dict[str, str | bool | int | float]
    tables: str = ""
    """A digest of tables and schema; empty in records of earlier versions."""

    def is_of(self, wanted: Identity) -> bool:
        """Whether data of this identity is the data that is ``wanted``."""
        known = {"tables": self.tables or wanted.tables}
        return self.model_copy(update=known) == wanted

    def difference(self, wanted: Identity) -> str:
        """Describe how this data differs from the data that is ``wanted``."""
        if str(self) == str(wanted):
            return f"loaded is {self}, with other tables or another schema than the workload has now"
        return f"loaded is {self}, the study says {wanted}"

    def __str__(self) -> str:
        """Describe it for people."""
        options = "".join(f", {name} {describe_value(value)}" for name, value in self.options.items())
        return f"SF {self.scale:g}, seed {self.seed}{options}"


class Unfinished(_Part):
    """A run that has begun to change the data and has not noted its end."""

    run: str
    label: str = ""
    """The label of its sessions, which tells whether it still runs."""


def _as_noted_before(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Read a plain name, as earlier versions wrote it."""
    return {"run": value} if isinstance(value, str) else value


class Detail(_Part):
    """The state of the data."""

    made: tuple[Made, ...] | None = None
    """What the schema's ``create`` and ``keys`` have made; None in records of earlier versions."""
    is_making: bool = False
    """Whether tables were about to be made, in a database where each statement is committed at once: nothing else had
    their names then."""
    loader: str = ""
    """The label of the load that runs, or was interrupted."""
    rows: dict[str, _Count] = Field(default_factory=dict)
    changed: bool = False
    """Whether a run may have changed the data."""
    unfinished: list[Annotated[Unfinished, BeforeValidator(_as_noted_before)]] = Field(default_factory=list)
    tallies: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """By name: the sum that is surely committed, and the sum that may be."""
    handed_out: dict[str, _Count] = Field(default_factory=dict)
    """By table, how many keys runs have used up (`pick.once`); by table with `` new`` behind it, how many they have
    made (`pick.new`)."""


@dataclass
class Record:
    """The record of one workload's data."""

    identity: Identity | None
    state: str
    detail: Detail = field(default_factory=Detail)
    damage: str = ""
    """What is wrong with the record; then only ``state`` and ``detail.made`` of it can be used."""

    @property
    def labels(self) -> set[str]:
        """The labels of the load and the runs that have not noted their end."""
        return {self.detail.loader, *(run.label for run in self.detail.unfinished)} - {""}


def read(admin: _engine.Admin, dialect: Dialect, workload: str) -> Record | None:
    """Read the record of a workload's data; None where there is none.

    Raises ``MeasurementError`` where the table is another's, or cannot be read.
    """
    if not exists(admin, dialect):
        return None
    name = dialect.literal(workload)
    question = f"SELECT identity, state, detail FROM {TABLE} WHERE workload = {name}"
    _, rows = admin.query(question, answer_timeout_s=BOOK_S)
    if not rows:
        return None
    return of_texts(*(cell or "" for cell in rows[0]))


def of_texts(identity_text: str, state: str, detail_text: str) -> Record:
    """Read a record from what it was written as; what is wrong with it is told in it."""
    identity, fault = _parsed(Identity, identity_text, "identity")
    detail, detail_fault = _parsed(Detail, detail_text, "detail")
    if detail is None:
        detail = Detail(made=_made_of(detail_text))
    if state not in ("loading", "loaded"):
        fault = fault or f"state: {state!r} is neither loading nor loaded"
    return Record(identity, state, detail, fault or detail_fault)


def owners(admin: _engine.Admin, dialect: Dialect) -> dict[tuple[str, str], str]:
    """Tell which workload's data each object belongs to, by kind and id. Raises ``MeasurementError``."""
    if not exists(admin, dialect):
        return {}
    _, rows = admin.query(f"SELECT workload, detail FROM {TABLE}", answer_timeout_s=BOOK_S)
    return {
        (kind, number): workload or ""
        for workload, detail in rows
        for kind, number, _ in _made_of(detail or "") or ()
    }


def _parsed(model: type[Model], text: str, name: str) -> tuple[Model | None, str]:
    try:
        return model.model_validate_json(text), ""
    except ValidationError as error:
        return None, next(faults_of(name, model, error.errors(include_url=False), ()))


def _made_of(text: str) -> tuple[Made, ...] | None:
    """Read what was made from a record in which something else is wrong."""

    class WithMade(_Part):
        made: tuple[Made, ...] | None = None

    found, _ = _parsed(WithMade, text, "detail")
    return found.made if found is not None else None


def write(admin: _engine.Admin, dialect: Dialect, workload: str, record: Record) -> None:
    """Write the record, in a transaction of the caller's. Raises ``MeasurementError``."""
    name = dialect.literal(workload)
    values = ", ".join([name, *map(dialect.literal, texts_of(record))])
    admin.query(f"DELETE FROM {TABLE} WHERE workload = {name}")
    admin.query(f"INSERT INTO {TABLE} ({', '.join(_COLUMNS)}) VALUES ({values})")


def texts_of(record: Record) -> list[str]:
    """Write a record as texts: identity, state, detail. Raises ``MeasurementError``."""
    assert record.identity is not None  # noqa: S101 - for the type checker: what is damaged is not written
    return [_json(record.identity), record.state, _json(record.detail)]


def _json(part: _Part) -> str:
    try:
        return json.dumps(part.model_dump(mode="python"), allow_nan=False)
    except ValueError:
        raise MeasurementError(f"{TABLE}: a number that is to be noted is not finite") from None


def exists(admin: _engine.Admin, dialect: Dialect) -> bool:
    """Whether the table is there. Raises ``MeasurementError`` where something else has its name."""
    found = relations(admin, dialect, [TABLE])
    if not found:
        return False
    first = found[0]
    if first.kind != "table" or not set(_COLUMNS) <= set(first.columns):
        what = f"with the columns {', '.join(first.columns)}" if first.columns else "without columns"
        raise MeasurementError(
            f"the {first.kind} {first.name}, {what}, was not made by nephoscope, whose own has the columns"
            f" {', '.join(_COLUMNS)}: use an empty database or schema"
        )
    return True


@dataclass(frozen=True)
class Relation:
    """An object whose name a statement could mean."""

    kind: str
    id: str
    name: str
    """With its schema."""
    table: str
    """Without it."""
    columns: tuple[str, ...]

    @property
    def made(self) -> Made:
        """The object as the record has it."""
        return (self.kind, self.id, self.name)


def relations(admin: _engine.Admin, dialect: Dialect, names: list[str]) -> list[Relation]:
    """Find all objects of these names on the search path; the one that a statement would use comes first."""
    if not names:
        return []
    _, rows = admin.query(dialect.relations.format(names=", ".join(map(dialect.literal, names))))
    return [
        Relation(kind or "", number or "", name or "", table or "", tuple(json.loads(columns or "[]")))
        for kind, number, name, table, columns in rows
    ]


def objects(admin: _engine.Admin, dialect: Dialect) -> dict[tuple[str, str], str]:
    """List the database's objects: names by kind and id."""
    _, rows = admin.query(dialect.objects)
    return {(kind or "", number or ""): name or "" for kind, number, name in rows}
