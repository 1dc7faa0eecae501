"""The data of a workload in a system without SQL: rows by their key, and the record of them in a hash beside them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nephoscope.engine.data import CheckResult, WorkloadData
from nephoscope.engine.records import BOOK_S, TABLE, Detail, Made, Record, of_texts, texts_of
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nephoscope import _engine
    from nephoscope.collectors.presence import Presence
    from nephoscope.study.workload import Workload

_DROP = (
    "local found = redis.call('SCAN', ARGV[1], 'MATCH', KEYS[1] .. ':*', 'COUNT', 1000) "
    "if #found[2] > 0 then redis.call('UNLINK', unpack(found[2])) end return found[1]"
)
"""Removes some rows of a table, and gives where to go on: rows, too, that an update has made of a deleted one."""


def data_for(
    workload: Workload, url: str, connect_timeout: float, load_command: str = "nephoscope load STUDY"
) -> WorkloadData:
    """Give the data of a workload in a database, as ``WorkloadData`` says."""
    capabilities = workload.description["capabilities"]
    kind = WorkloadData if capabilities["sql"] or not capabilities["stores"] else KeyedData
    return kind(workload, url, connect_timeout, load_command)


def _words(*words: str) -> str:
    """Write a command as the driver reads it."""

    def quoted(word: str) -> str:
        for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
            word = word.replace(letter, escape)
        return f'"{word}"'

    return " ".join(map(quoted, words))


class KeyedData(WorkloadData):
    """The data of one workload in Redis. Nothing there is a transaction, and no session sees which others there are."""

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
        _, rows = admin.query(_words("HGET", TABLE, self.workload.name), answer_timeout_s=BOOK_S)
        if rows[0][0] is None:
            return None
        try:
            identity, state, detail = map(str, json.loads(rows[0][0]))
        except ValueError:
            identity, state, detail = "", "", ""
        return of_texts(identity, state, detail)

    def _write(self, admin: _engine.Admin, record: Record) -> None:
        text = json.dumps(texts_of(record))
        admin.query(_words("HSET", TABLE, self.workload.name, text), answer_timeout_s=BOOK_S)

    def _alive(self, admin: _engine.Admin, labels: set[str], own: str = "") -> set[str]:
        del admin, labels, own
        return set()

    def _make_tables(
        self, admin: _engine.Admin, presence: Presence, before: Record | None
    ) -> tuple[Made, ...]:
        mine = {name for _, name, _ in (before.detail.made or ())} if before is not None else set()
        tables = [table["name"] for table in self.workload.description["tables"]]
        for name in sorted(mine):
            place = "0"
            while (place := str(admin.query(_words("EVAL", _DROP, "1", name, place))[1][0][0])) != "0":
                pass
            admin.query(_words("UNLINK", name))
        for name in tables:
            if admin.query(_words("EXISTS", name))[1] != [["0"]]:
                raise MeasurementError(
                    f"the key {name} is there and was not made by nephoscope: use an empty database"
                )
        made = tuple(("table", name, name) for name in tables)
        self._write(admin, Record(self._identity, "loading", Detail(made=made, loader=presence.label)))
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
