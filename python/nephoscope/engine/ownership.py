"""The objects that nephoscope has made in a database, and may drop; all others stay.

A schema's SQL comes from the workload and may do anything. Its transaction is committed only if all dropped objects
are in the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.engine.records import objects, relations
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nephoscope import _engine
    from nephoscope.dialects import Dialect
    from nephoscope.engine.records import Made, Record
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
        why = "is not the one that nephoscope made, which is gone"
    else:
        why = "exists already, and no record says that nephoscope made it"
        if record.state == "loaded":
            fitting = (one for one in found if one.kind == "table" and columns[one.table] <= set(one.columns))
            made = tuple(one.made for one in fitting)
    known = _keys(made)
    for one in found:
        if one.made[:2] not in known:
            raise MeasurementError(f"the {one.kind} {one.name} {why}; {_NEVER}")
    return made


def run_section(
    admin: _engine.Admin, dialect: Dialect, workload: Workload, section: str, mine: Iterable[Made]
) -> tuple[Made, ...]:
    """Run a section of the workload's schema in the present transaction; give what it has made.

    Raises ``MeasurementError`` where it fails, has dropped more than what is ``mine``, or has ended the transaction.
    """
    sql = workload.description["schema"][section]
    if not sql:
        return ()
    where = f"the section {section} of the schema of {workload.name}"
    admin.query("SAVEPOINT nephoscope_section")
    before = objects(admin, dialect)
    try:
        admin.query(sql)
    except MeasurementError as error:
        raise MeasurementError(f"{where}: {error}") from None
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


def create(admin: _engine.Admin, dialect: Dialect, workload: Workload) -> tuple[Made, ...]:
    """Run the section ``create`` in the present transaction; give what it has made.

    Raises ``MeasurementError``, also where a table of the workload is not among that.
    """
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
