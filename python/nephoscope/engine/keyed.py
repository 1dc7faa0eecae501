"""The data of a workload in a system without SQL: tables of rows by their key, and the record of them beside them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nephoscope.dialects import KEYED
from nephoscope.engine.data import CheckResult, WorkloadData
from nephoscope.engine.records import BOOK_S, TABLE, Detail, Made, Record, of_texts, texts_of
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nephoscope import _engine
    from nephoscope.collectors.presence import Presence
    from nephoscope.study.workload import Workload


def data_for(
    workload: Workload,
    url: str,
    connect_timeout: float,
    load_command: str = "nephoscope load STUDY",
    *,
    replaceable: bool = False,
) -> WorkloadData:
    """Give the data of a workload in a database, as ``WorkloadData`` says."""
    capabilities = workload.description["capabilities"]
    kind = WorkloadData if capabilities["sql"] or not capabilities["stores"] else KeyedData
    return kind(workload, url, connect_timeout, load_command, replaceable=replaceable)


def _asking(
    admin: _engine.Admin, answer_timeout_s: float | None = None
) -> Callable[[str], list[list[str | None]]]:
    return lambda words: admin.query(words, answer_timeout_s=answer_timeout_s)[1]


class KeyedData(WorkloadData):
    """The data of one workload. Nothing there is a transaction, and no session sees which others there are."""

    def __init__(
        self,
        workload: Workload,
        url: str,
        connect_timeout: float,
        load_command: str = "nephoscope load STUDY",
        *,
        replaceable: bool = False,
    ) -> None:
        """As ``WorkloadData``."""
        super().__init__(workload, url, connect_timeout, load_command, replaceable=replaceable)
        self._system = KEYED[workload.description["dialect"]]

    @contextmanager
    def _admin(
        self, answer_timeout_s: float | None = None, presence: Presence | None = None
    ) -> Iterator[_engine.Admin]:
        del presence
        with super()._admin(answer_timeout_s) as admin:
            yield admin

    @contextmanager
    def _transaction(self, admin: _engine.Admin) -> Iterator[Record | None]:
        yield self._read(admin)

    def _read(self, admin: _engine.Admin) -> Record | None:
        text = self._system.read(_asking(admin, BOOK_S), TABLE, self.workload.name)
        if text is None:
            return None
        try:
            identity, state, detail = map(str, json.loads(text))
        except ValueError:
            identity, state, detail = "", "", ""
        return of_texts(identity, state, detail)

    def _write(self, admin: _engine.Admin, record: Record) -> None:
        text = json.dumps(texts_of(record))
        self._system.write(_asking(admin, BOOK_S), TABLE, self.workload.name, text)

    def _alive(self, admin: _engine.Admin, labels: set[str], own: str = "") -> set[str]:
        del admin, labels, own
        return set()

    def _make_tables(
        self, admin: _engine.Admin, presence: Presence, before: Record | None
    ) -> tuple[Made, ...]:
        system, ask = self._system, _asking(admin)
        tables = {
            table["name"]: [(column["name"], column["kind"]) for column in table["columns"]]
            for table in self.workload.description["tables"]
        }
        for name in sorted(name for _, name, _ in (before.detail.made or ())) if before is not None else ():
            system.drop(ask, name)
        for name in tables:
            if system.exists(ask, name):
                raise MeasurementError(
                    f"the {system.thing} {name} is there and was not made by nephoscope: use an empty database"
                )
        made = tuple(("table", name, name) for name in tables)
        # Recorded first: a load that is killed in between leaves nothing that the next one would not remove.
        self._write(admin, Record(self._identity, "loading", Detail(made=made, loader=presence.label)))
        for name, columns in tables.items():
            system.make(ask, name, columns)
        return made

    def _add_keys(self, admin: _engine.Admin, made: tuple[Made, ...]) -> tuple[Made, ...]:
        del admin, made
        return ()

    def check(self, *, external: bool = False) -> list[CheckResult]:
        """Tell that nothing is checked: invariants are SQL. Raises ``MeasurementError`` if the data is not there."""
        if not external:
            self.require()
        reason = f"invariants are SQL, which {self.workload.description['dialect']} does not have"
        return [
            CheckResult(invariant["statement"], invariant["help"], "not checked", reason)
            for invariant in self.workload.description["invariants"]
        ]
