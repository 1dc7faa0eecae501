"""The objects that nephoscope has made in a database, and may drop; all others stay.

A schema's SQL is the workload's, and may say anything: so it runs in a transaction that is only committed where nothing
is gone that the record does not name. Where statements that define data commit by themselves, it may drop nothing at
all: what was made is dropped here, object by object.
"""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nephoscope.engine import records
from nephoscope.engine.records import objects, relations
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from nephoscope import _engine
    from nephoscope.dialects import Dialect, ImplicitCommit
    from nephoscope.engine.records import Made, Record, Relation
    from nephoscope.study.workload import Workload

_NEVER = "use an empty database or schema (nephoscope never drops what it has not made)"


def droppable(
    admin: _engine.Admin, dialect: Dialect, workload: Workload, record: Record | None
) -> tuple[Made, ...]:
    """Return the objects that the record names, after a check of what has the names of the workload's tables.

    A record in which that cannot be read is believed where its state says that a load was completed and the tables
    have the workload's columns. Raises ``MeasurementError`` where something in the way is another's.
    """
    columns = {
        table["name"]: {column["name"] for column in table["columns"]}
        for table in workload.description["tables"]
    }
    found = relations(admin, dialect, list(columns))
    made: tuple[Made, ...] = ()
    if record is None:
        why = "exists already and was not made by nephoscope"
    elif record.detail.made is not None:
        made = record.detail.made
        if record.detail.is_making:
            made += _fitting(found, columns)
        why = "is not the one that nephoscope made, which is gone"
    else:
        why = "exists already, and no record says that nephoscope made it"
        if record.state == "loaded":
            made = _fitting(found, columns)
    known = _keys(made)
    strange = [one for one in found if one.made[:2] not in known]
    if strange:
        owners, first = records.owners(admin, dialect), strange[0]
        if owner := owners.get(first.made[:2]):
            raise MeasurementError(
                f"the {first.kind} {first.name} holds data of the workload {owner}; {workload.name} needs another"
                " database or schema: name one in system.database, or in the URL"
            )
        raise MeasurementError(f"the {first.kind} {first.name} {why}; {_NEVER}")
    return made


def _fitting(found: Iterable[Relation], columns: Mapping[str, set[str]]) -> tuple[Made, ...]:
    """Tell which tables have the workload's columns."""
    return tuple(one.made for one in found if one.kind == "table" and columns[one.table] <= set(one.columns))


def drop_made(admin: _engine.Admin, dialect: Dialect, workload: Workload, mine: Iterable[Made]) -> None:
    """Drop what is ``mine``. Raises ``MeasurementError``."""
    if dialect.implicit is None:
        run_section(admin, dialect, workload, "drop", mine)
    else:
        _drop(admin, dialect, dialect.implicit, _keys(mine))


def _drop(
    admin: _engine.Admin, dialect: Dialect, implicit: ImplicitCommit, keys: Collection[tuple[str, str]]
) -> None:
    """Drop objects by kind and id, under the names that they have now."""
    for key, name in objects(admin, dialect).items():
        if key in keys:
            admin.query(implicit.drop.format(kind=key[0], name=name))


def run_section(
    admin: _engine.Admin, dialect: Dialect, workload: Workload, section: str, mine: Iterable[Made]
) -> tuple[Made, ...]:
    """Run a section of the workload's schema in the present transaction; give what it has made.

    Raises ``MeasurementError`` where it fails, has dropped more than what is ``mine``, or has ended the transaction.
    """
    if not workload.description["schema"][section]:
        return ()
    if dialect.implicit is not None:
        return _run_committing(admin, dialect, dialect.implicit, workload, section)
    where = _place_of(workload, section)
    admin.query("SAVEPOINT nephoscope_section")
    before = objects(admin, dialect)
    query_section(admin, workload, section)
    try:
        admin.query("RELEASE SAVEPOINT nephoscope_section")
    except MeasurementError:  # it was rolled back with its transaction
        raise MeasurementError(
            f"{where} ends the transaction that it runs in: it may have no BEGIN, COMMIT or ROLLBACK"
        ) from None
    after = objects(admin, dialect)
    known = _keys(mine)
    for key, name in before.items():
        if key not in after and key not in known:
            raise MeasurementError(
                f"{where} would drop the {key[0]} {name}, which nephoscope has not made; nothing was dropped"
            )
    return tuple((*key, name) for key, name in after.items() if key not in before)


def query_section(admin: _engine.Admin, workload: Workload, section: str) -> None:
    """Send a section's SQL, whatever it does. Raises ``MeasurementError`` that names the section."""
    try:
        admin.query(workload.description["schema"][section])
    except MeasurementError as error:
        raise MeasurementError(f"{_place_of(workload, section)}: {error}") from None


def _place_of(workload: Workload, section: str) -> str:
    return f"the section {section} of the schema of {workload.name}"


_DROPS = re.compile(
    r"\bDROP\s+(TEMPORARY\s+)?(TABLE|VIEW|DATABASE|SCHEMA|SEQUENCE|FUNCTION|PROCEDURE|EVENT|TABLESPACE)\b"
    r"|\bTRUNCATE\b|\bRENAME\s+TABLE\b|\bOR\s+REPLACE\b",
    re.IGNORECASE,
)
"""What takes an object from its place: in a comment, too, which some servers execute."""


def _run_committing(
    admin: _engine.Admin, dialect: Dialect, implicit: ImplicitCommit, workload: Workload, section: str
) -> tuple[Made, ...]:
    """Run a section whose statements commit by themselves."""
    if found := _DROPS.search(workload.description["schema"][section]):
        raise MeasurementError(
            f"{_place_of(workload, section)} has {' '.join(found.group().split())}: this database could not take that"
            " back, so a schema drops nothing there"
        )
    before = objects(admin, dialect)
    with _undone_on_failure(admin, dialect):
        query_section(admin, workload, section)
    mark = f"nephoscope {secrets.token_hex(8)}"
    for key, name in objects(admin, dialect).items():
        if key not in before and key[0] == "table" and key[1].endswith(" "):
            admin.query(implicit.mark.format(name=name, mark=mark))
    return tuple((*key, name) for key, name in objects(admin, dialect).items() if key not in before)


@contextmanager
def _undone_on_failure(admin: _engine.Admin, dialect: Dialect) -> Iterator[None]:
    """Drop what was made meanwhile where that failed, and no transaction takes it back."""
    before = objects(admin, dialect) if dialect.implicit is not None else {}
    try:
        yield
    except MeasurementError:
        if dialect.implicit is not None:
            with suppress(MeasurementError):
                _drop(admin, dialect, dialect.implicit, objects(admin, dialect).keys() - before.keys())
        raise


def create(admin: _engine.Admin, dialect: Dialect, workload: Workload) -> tuple[Made, ...]:
    """Run the section ``create`` in the present transaction; give what it has made.

    Raises ``MeasurementError``, also where a table of the workload is not among that.
    """
    with _undone_on_failure(admin, dialect):
        made = run_section(admin, dialect, workload, "create", ())
        known = _keys(made)
        names = [table["name"] for table in workload.description["tables"]]
        first = {one.table: one for one in reversed(relations(admin, dialect, names))}
        for name in names:
            if name not in first or first[name].made[:2] not in known:
                raise MeasurementError(
                    f"the section create of the schema of {workload.name} does not make its table {name}"
                )
    return made


def _keys(made: Iterable[Made]) -> set[tuple[str, str]]:
    return {(kind, number) for kind, number, _ in made}
