"""The data that a workload runs on: loading it, knowing what is there, checking it.

A table beside the workload's tables records what was loaded (``records.py``): a second load does nothing, an
interrupted load is seen, and rows that runs have added are told from rows that were lost.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.collectors.presence import Presence, lasting_labels, name_of
from nephoscope.dialects import DIALECTS
from nephoscope.engine import ownership, records
from nephoscope.engine.records import BOOK_S, Detail, Identity, Record, Unfinished
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.study.workload import Workload

    Progress = Callable[[Sequence[tuple[str, int, int]]], object]


@dataclass(frozen=True)
class LoadOutcome:
    """The outcome of loading."""

    loaded: bool
    """False if the data was there already."""
    message: str
    rows: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    """For tables, rows, keys and indexes, in s."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of an invariant's check."""

    name: str
    help: str
    verdict: str
    """``holds``, ``broken``, ``unknown`` or ``not checked``; the last two with the reason in ``detail``."""
    detail: str = ""


class WorkloadData:
    """The data of one workload in one database."""

    def __init__(
        self,
        workload: Workload,
        url: str,
        connect_timeout: float,
        load_command: str = "nephoscope load STUDY",
        *,
        replaceable: bool = False,
    ) -> None:
        """Take the workload and the URL of an endpoint that takes writes; touch nothing yet.

        ``connect_timeout``, in s, is that of the connection for set-up and checks. Messages name the command that
        loads the data. ``replaceable`` data makes room for another scale or seed without ``force``.
        """
        self.workload = workload
        self._url = url
        self._connect_timeout = connect_timeout
        self._load_command = load_command
        self._replaceable = replaceable
        self.stored = workload.description["capabilities"]["stores"]
        """Whether there is a database behind the driver at all."""
        if self.stored and workload.description["capabilities"]["sql"]:
            self._dialect = DIALECTS[workload.description["dialect"]]

    @contextmanager
    def _admin(
        self, answer_timeout_s: float | None = None, presence: Presence | None = None
    ) -> Iterator[_engine.Admin]:
        admin = _engine.Admin(
            self._url,
            connect_timeout_s=self._connect_timeout,
            answer_timeout_s=answer_timeout_s,
        )
        try:
            if presence is not None:
                admin.query(presence.announce(self._dialect), answer_timeout_s=BOOK_S)
            yield admin
        finally:
            admin.close()

    @contextmanager
    def _transaction(self, admin: _engine.Admin) -> Iterator[Record | None]:
        """Do something whole or not at all, alone with the record; gives it, or None where there is none."""
        with self._alone(admin):
            there = records.exists(admin, self._dialect)
            create = records.CREATE.format(text=self._dialect.text)
            begin = [self._dialect.begin, self._dialect.lock.format(table=records.TABLE) if there else create]
            if not there and self._dialect.implicit is not None:
                begin.reverse()  # to make a table ends a transaction
            try:
                for sql in begin:
                    admin.query(sql, answer_timeout_s=BOOK_S)
                yield self._read(admin) if there else None
            except BaseException:
                with suppress(MeasurementError):
                    admin.query("ROLLBACK")
                    if not there and self._dialect.implicit is not None:
                        self._drop_if_empty(admin)
                raise
            admin.query("COMMIT")

    @staticmethod
    def _drop_if_empty(admin: _engine.Admin) -> None:
        _, rows = admin.query(f"SELECT workload FROM {records.TABLE} LIMIT 1")
        if not rows:
            admin.query(f"DROP TABLE {records.TABLE}")

    @contextmanager
    def _alone(self, admin: _engine.Admin) -> Iterator[None]:
        """Keep others from the record for longer than a transaction, where statements commit by themselves."""
        implicit = self._dialect.implicit
        if implicit is None:
            yield
            return
        wait_s = round(BOOK_S / 2)
        _, rows = admin.query(implicit.take.format(seconds=wait_s), answer_timeout_s=BOOK_S)
        if rows != [["1"]]:
            raise MeasurementError(
                f"something else has kept the table {records.TABLE} locked for more than {wait_s} s"
            )
        try:
            yield
        finally:
            with suppress(MeasurementError):
                admin.query(implicit.give)

    @property
    def _identity(self) -> Identity:
        workload = self.workload
        return Identity(
            scale=workload.scale,
            seed=workload.data_seed,
            options=workload.data_options,
            tables=workload.schema_digest,
        )

    # --- what is there --------------------------------------------------------------------------------------

    def _read(self, admin: _engine.Admin) -> Record | None:
        return records.read(admin, self._dialect, self.workload.name)

    def _write(self, admin: _engine.Admin, record: Record) -> None:
        records.write(admin, self._dialect, self.workload.name, record)

    def _sound(self, record: Record | None) -> Record | None:
        """Return the record if it is not damaged. Raises ``MeasurementError``."""
        if record is not None and record.damage:
            raise MeasurementError(
                f"the record of {self.workload.name} in the table {records.TABLE} is damaged ({record.damage}): "
                f"what is known of the data is lost; to load it anew: {self._load_command} --force"
            )
        return record

    def require(self) -> Detail:
        """Require that the data is there, complete, and the study's; return its record.

        Raises ``MeasurementError``: an incomplete load is never measured.
        """
        if not self.stored:
            return Detail()
        with self._admin(BOOK_S) as admin:
            record = self._sound(self._read(admin))
        name = self.workload.name
        again = f"load it with: {self._load_command}"
        if record is None:
            raise MeasurementError(f"the data of {name} is not loaded ({self._identity}); {again}")
        if record.state != "loaded":
            raise MeasurementError(f"the data of {name} is incomplete: a load broke off; {again} --force")
        if difference := self._difference(record):
            raise MeasurementError(f"the data of {name} is another: {difference}; {again} --force")
        return record.detail

    def _difference(self, record: Record) -> str:
        """Say how loaded data differs from the study's; empty where it is the study's."""
        if record.identity is None or record.identity.is_of(self._identity):
            return ""
        return record.identity.difference(self._identity)

    def is_loaded(self) -> bool:
        """Whether the data is there as the study says. Raises ``MeasurementError`` where its record is damaged."""
        if not self.stored:
            return True
        with self._admin(BOOK_S) as admin:
            record = self._sound(self._read(admin))
        return record is not None and record.state == "loaded" and not self._difference(record)

    # --- loading --------------------------------------------------------------------------------------------

    def load(self, *, force: bool, threads: int, progress: Progress) -> LoadOutcome:
        """Load the data, unless it is there already; ``force`` loads it again.

        Raises ``MeasurementError``. Objects that others have made are never dropped.
        """
        name = self.workload.name
        if not self.stored:
            return LoadOutcome(
                loaded=False, message=f"{name}: this driver stores nothing; there is nothing to load"
            )
        started = _engine.monotonic_ns()
        presence = Presence.of(f"load of {name}")
        with self._admin(presence=presence) as admin:
            record = self._read(admin)
            if not force and self._is_there(record):
                return LoadOutcome(loaded=False, message=f"{name}: already loaded, {self._identity}")
            self._refuse_while_in_use(admin, record)
            made = self._make_tables(admin, presence, record)
            rows, statements = _engine.load(
                json.dumps(self.workload.spec()), self._url, self._threads(threads), progress
            )
            with self._transaction(admin):
                made += self._add_keys(admin, made)
                self._write(admin, Record(self._identity, "loaded", Detail(made=made, rows=dict(rows))))
        seconds = (_engine.monotonic_ns() - started) / 1e9
        total = sum(count for _, count in rows)
        more = f" and {statements:,} statements of w:load" if statements else ""
        message = f"{name}: loaded {total:,} rows{more}, {self._identity}, in {seconds:.1f} s"
        return LoadOutcome(loaded=True, message=message, rows=tuple(rows), seconds=seconds)

    def _add_keys(self, admin: _engine.Admin, made: tuple[records.Made, ...]) -> tuple[records.Made, ...]:
        return ownership.run_section(admin, self._dialect, self.workload, "keys", made)

    def _alive(self, admin: _engine.Admin, labels: set[str], own: str = "") -> set[str]:
        """Give the labels of what goes on, of those that are known."""
        return lasting_labels(admin, self._dialect, labels, own)

    def _threads(self, wanted: int) -> int:
        """How many threads load where so many are wanted, 0 for as many as are good."""
        # A database in this process, SQLite, takes one writer at a time. One thread loads table after table, so that
        # rows with foreign keys, which SQLite cannot add later, find what they refer to.
        return 1 if not wanted and self.workload.description["capabilities"]["blocking"] else wanted

    def _is_there(self, record: Record | None) -> bool:
        """Whether the data is there. Raises ``MeasurementError`` where only ``force`` would help."""
        record = self._sound(record)
        if record is None or record.state != "loaded":
            return False
        difference = self._difference(record)
        if difference and not self._replaceable:
            raise MeasurementError(
                f"{self.workload.name}: {difference}; to load it anew: {self._load_command} --force"
            )
        return not difference

    def _refuse_while_in_use(self, admin: _engine.Admin, record: Record | None) -> None:
        if record is None:
            return
        if busy := record.labels & self._alive(admin, record.labels):
            raise MeasurementError(
                f"the data of {self.workload.name} is in use: {name_of(busy.pop())} goes on; wait for its end"
            )

    def _make_tables(
        self, admin: _engine.Admin, presence: Presence, before: Record | None
    ) -> tuple[records.Made, ...]:
        """Replace the tables of an earlier load by the workload's, and record what was made.

        It is one transaction. ``before`` is the record that the decision rests on.
        """
        with self._transaction(admin) as record:
            if record != before:
                raise MeasurementError(
                    f"something else has begun to load or change the data of {self.workload.name} meanwhile"
                )
            mine = ownership.droppable(admin, self._dialect, self.workload, record)
            if self._dialect.implicit is not None:
                detail = Detail(made=mine, is_making=True, loader=presence.label)
                self._write(admin, Record(self._identity, "loading", detail))
            if mine:
                ownership.drop_made(admin, self._dialect, self.workload, mine)
            made = ownership.create(admin, self._dialect, self.workload)
            self._write(admin, Record(self._identity, "loading", Detail(made=made, loader=presence.label)))
        return made

    def prewarm(self) -> None:
        """Read the tables whole, by the section ``prewarm`` of the schema. Raises ``MeasurementError``."""
        with self._admin() as admin:
            ownership.query_section(admin, self.workload, "prewarm")

    # --- runs -----------------------------------------------------------------------------------------------

    def begin_run(self, run: str, presence: Presence) -> None:
        """Record that a run changes the data: if it is killed, its tallies are lost, and checks must know.

        Raises ``MeasurementError``.
        """
        if not self.stored:
            return
        with self._admin(BOOK_S) as admin, self._noting(admin) as detail:
            detail.unfinished.append(Unfinished(run=run, label=presence.label))

    def others(self, presence: Presence) -> set[str]:
        """Return the labels of the server's other sessions. Raises ``MeasurementError``."""
        if not self.stored:
            return set()
        with self._admin(BOOK_S) as admin:
            record = self._read(admin)
            known = record.labels if record is not None else set()
            return self._alive(admin, known, presence.label)

    def end_run(
        self,
        presence: Presence,
        tallies: Mapping[str, Mapping[str, float]],
        handed_out: Mapping[str, int],
    ) -> None:
        """Record a run's tallies and the keys that it has used up. Raises ``MeasurementError``."""
        if not self.stored:
            return
        with self._admin(BOOK_S) as admin, self._noting(admin) as detail:
            if not _settled(detail, presence):
                raise MeasurementError(f"the data of {self.workload.name} was loaded anew meanwhile")
            detail.changed = True
            for name, tally in tallies.items():
                sure, uncertain = detail.tallies.get(name, (0.0, 0.0))
                detail.tallies[name] = (sure + tally["amount"], uncertain + tally["uncertain"])
            detail.handed_out = dict(handed_out)

    def forget_run(self, presence: Presence) -> None:
        """Record that a run has ended without a transaction. Raises ``MeasurementError``."""
        if not self.stored:
            return
        with self._admin(BOOK_S) as admin, self._noting(admin) as detail:
            _settled(detail, presence)

    @contextmanager
    def _noting(self, admin: _engine.Admin) -> Iterator[Detail]:
        """Change the record of data that is there."""
        with self._transaction(admin) as found:
            record = self._sound(found)
            if record is None or record.state != "loaded":
                raise MeasurementError(f"the data of {self.workload.name} is gone, or is being loaded anew")
            yield record.detail
            self._write(admin, record)

    # --- checking -------------------------------------------------------------------------------------------

    def check(self, *, external: bool = False) -> list[CheckResult]:
        """Check the workload's invariants on the data as it is now.

        Raises ``MeasurementError`` if the data is not there, or a check cannot be run.
        """
        detail = Detail(changed=True) if external else self.require()
        if not self.stored:
            return []
        checks = {check["name"]: check for check in self.workload.description["checks"]}
        with self._admin() as admin:
            lost = self._what_is_lost(admin, detail)
            return [
                self._check_one(admin, invariant, checks[invariant["statement"]], detail, lost)
                for invariant in self.workload.description["invariants"]
            ]

    def _what_is_lost(self, admin: _engine.Admin, detail: Detail) -> str:
        """Say why the tallies of runs are not known; empty if they are."""
        if not detail.unfinished:
            return ""
        alive = self._alive(admin, {run.label for run in detail.unfinished} - {""})
        for run in detail.unfinished:
            if run.label in alive:
                return f"the run {run.run} goes on: check again when it has ended"
        return (
            f"the run {detail.unfinished[0].run} did not end: what it has added up is not known; "
            f"to load the data anew: {self._load_command} --force"
        )

    def _check_one(
        self,
        admin: _engine.Admin,
        invariant: Mapping[str, Any],
        check: Mapping[str, Any],
        detail: Detail,
        lost: str,
    ) -> CheckResult:
        name, help_text = invariant["statement"], invariant["help"]
        if invariant["when"] == "loaded" and (detail.changed or detail.unfinished):
            reason = "it holds only until a run has changed the data"
            return CheckResult(name, help_text, "not checked", reason)
        values = {}
        for param in check["params"]:
            kind, _, tally = param.partition("_")
            sure, uncertain = detail.tallies.get(tally, (0.0, 0.0))
            values[param] = uncertain if kind == "uncertain" else sure
        if values and lost:
            return CheckResult(name, help_text, "unknown", lost)
        columns, rows = admin.query(_engine.render(check["sql"], values))
        if not rows:
            return CheckResult(name, help_text, "holds")
        first = ", ".join(f"{column} {cell}" for column, cell in zip(columns, rows[0], strict=True))
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        return CheckResult(name, help_text, "broken", first + more)


def _settled(detail: Detail, presence: Presence) -> bool:
    """Remove a run from the unfinished ones; returns whether it was among them."""
    before = len(detail.unfinished)
    detail.unfinished = [run for run in detail.unfinished if run.label != presence.label]
    return len(detail.unfinished) < before
