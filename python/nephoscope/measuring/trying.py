"""Trying a workload: each transaction runs for a moment, so that a slip shows before a study meets it.

A database that is a file is made for the occasion: Lua and SQL are tried there. The SQL of the other dialects is not
tried: their transactions run on a driver that answers each statement with one row, which holds the statement's
parameters under their names and 1 under any other name.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

from nephoscope import _engine
from nephoscope.dialects import DIALECTS, url_without_database
from nephoscope.engine.keyed import data_for
from nephoscope.errors import InputError, MeasurementError, NephoscopeError
from nephoscope.measuring.preparing import load_description, tenant_description
from nephoscope.settings.loads import Load
from nephoscope.study.reading import LoadTable
from nephoscope.study.workload import Workload
from nephoscope.systems.tenants import Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SEED = 7
_TENANT = "try"
_SECONDS = (0.2, 2.0, 20.0)
"""How long each transaction runs, again and again, each time with other random numbers; a longer time is taken where
the machine was too busy to begin one in a shorter."""
_SLOW_S = 60.0
"""The timeout of a transaction: analytic queries take their time on a busy machine."""
_CONNECT_S = 10.0
_SCALES = (0.001, 0.01, 0.1)
"""Scale factors that are tried for a small database, the smallest first."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The outcome of one transaction."""

    transaction: str
    committed: int = 0
    aborted: int = 0
    failed: int = 0
    fault: str = ""
    """What is wrong; empty if nothing is."""
    error: str = ""
    """The first error of the database, which may be one that the workload expects."""


@dataclass(kw_only=True)
class Trial:
    """The outcome on one dialect."""

    dialect: str
    database: bool
    """Whether a database ran the SQL."""
    scale: float
    not_tried: str = ""
    """Why nothing could be tried."""
    transactions: list[Tried] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    """Invariants that the loaded data breaks."""

    @property
    def holds(self) -> bool:
        """Whether nothing wrong was found."""
        return not self.checks and not any(tried.fault for tried in self.transactions)


@dataclass(frozen=True)
class Trying:
    """A workload to be tried."""

    folder: Path
    options: Mapping[str, str | bool | float]
    scale: float | None
    """None for the smallest at which each table has rows, where data is loaded, and else for 1."""
    external: bool = False
    """Whether another tool makes the tables."""

    def on(self, dialect: str) -> Trial:
        """Try it on a dialect. Raises ``InputError`` where its files are refused."""
        file_url = DIALECTS[dialect].file_url if dialect in DIALECTS else None
        if file_url is not None and self.external:
            return Trial(dialect=dialect, database=True, scale=0.0, not_tried="its tables are another tool's")
        with TemporaryDirectory(prefix="nephoscope-") as folder:
            url = (
                file_url.format(path=quote(str(Path(folder) / "try.db")))
                if file_url is not None
                else url_without_database(dialect)
            )
            scale = self.scale
            if scale is None:
                scale = self._smallest(url) if file_url is not None else 1.0
            workload = self._workload(url, scale)
            trial = Trial(dialect=dialect, database=file_url is not None, scale=workload.scale)
            trial.not_tried = _loaded(workload, trial) if trial.database else ""
            if not trial.not_tried:
                used: dict[str, int] = {}
                trial.transactions = [_try(workload, name, used) for name in workload.transactions]
        return trial

    def on_all(self) -> list[Trial]:
        """Try it on every dialect; what one of them refuses is not tried there.

        Raises ``InputError`` where all of them refuse it.
        """
        trials, refusals = [], []
        for dialect in DIALECTS:
            try:
                trials.append(self.on(dialect))
            except InputError as error:
                refusals.append(error)
                trials.append(Trial(dialect=dialect, database=False, scale=0.0, not_tried=str(error)))
        if len(refusals) == len(trials):
            raise refusals[0]
        return trials

    def _workload(self, url: str, scale: float) -> Workload:
        workload = Workload(self.folder, scale, _SEED, self.options, url)
        _ = workload.description
        return workload

    def _smallest(self, url: str) -> float:
        """Find the smallest scale at which no table is empty that has rows at scale 1."""
        whole = _filled(self._workload(url, 1.0))
        for scale in _SCALES:
            try:
                if _filled(self._workload(url, scale)) == whole:
                    return scale
            except InputError:  # it refuses the scale
                continue
        return 1.0


def _filled(workload: Workload) -> set[str]:
    """Name the tables that have rows."""
    return {table["name"] for table in workload.description["tables"] if table["rows"]}


def _loaded(workload: Workload, trial: Trial) -> str:
    """Load and check the data; returns why that cannot be done, or nothing."""
    data = data_for(workload, workload.url, _CONNECT_S)
    try:
        data.load(force=False, threads=1, progress=lambda _: None)
        results = data.check()
    except MeasurementError as error:
        return str(error)
    broken = [result for result in results if result.verdict == "broken"]
    trial.checks = [f"invariant {result.name}: {result.detail}" for result in broken]
    return ""


def _try(workload: Workload, transaction: str, used: dict[str, int]) -> Tried:
    """Run a transaction for a moment. ``used`` has the keys that runs have used up, and gets those of this one."""
    table = LoadTable(sessions=1, statement_timeout=_SLOW_S, drain_timeout=_SLOW_S)
    tenant = tenant_description(table, Tenant(_TENANT, (workload.url,)), "rw", workload.spec(used))
    for seconds in _SECONDS:
        load = Load(concurrency=1.0, mix={transaction: 1.0}).to_engine(seconds)
        phase = {"name": "try", "kind": "measure", "labels": {}, "loads": {_TENANT: load}, "seconds": seconds}
        description = {**load_description(table, _SEED, []), "tenants": [tenant], "phases": [phase]}
        try:
            with _running(json.dumps(description)) as run:
                if tried := _outcome(run, transaction, used):
                    return tried
        except NephoscopeError as error:
            return Tried(transaction=transaction, fault=str(error))
    return Tried(transaction=transaction, fault=f"it did not begin within {_SECONDS[-1]:g} s")


@contextmanager
def _running(description: str) -> Iterator[_engine.Run]:
    run = _engine.Run(description)
    try:
        yield run
    finally:
        run.stop()


def _outcome(run: _engine.Run, transaction: str, used: dict[str, int]) -> Tried | None:
    """Read a run to its end; the keys that it has used up go into ``used``. None where no transaction has begun."""
    counts = dict.fromkeys(("committed", "aborted", "failed"), 0)
    error = fault = ""
    while (text := run.next(2 * _SLOW_S)) is not None:
        record = json.loads(text)
        match record["record"]:
            case "interval":
                for series in record["series"]:
                    for outcome in counts:
                        counts[outcome] += series[outcome]
            case "error":
                error = error or record["message"]
            case "end":
                fault = str(record.get("failure") or "")
                used.update(record.get("handed_out", {}).get(_TENANT, {}))
                if not record["started"] and not fault and not error:
                    return None
                break
    if counts["committed"] and "tx:skip()" in fault:
        fault = ""  # It has used up the few rows of a small scale.
    if not fault and not counts["committed"] + counts["aborted"]:
        fault = error or "it did not end"
    return Tried(transaction=transaction, **counts, fault=fault, error=error)
