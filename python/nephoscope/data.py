"""The data that a workload runs on: loading it, knowing what is there, checking it.

What was loaded stands in a table of its own, ``nephoscope_data``, beside the workload's tables: so that loading
again does nothing, a load that broke off is seen, and what runs have added can be told from what was lost.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.errors import MeasurementError
from nephoscope.units import describe_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nephoscope.workload import Workload

    Progress = Callable[[Sequence[tuple[str, int, int]]], object]

_TABLE = "nephoscope_data"
_BOOK_S = 20.0
"""How long reading and writing that table may take: a server that stands still, or waits for a replica, must not keep a
run from its end."""
_CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
  workload varchar(80) PRIMARY KEY,
  identity text NOT NULL,
  state varchar(10) NOT NULL,
  detail text NOT NULL
)"""


@dataclass(frozen=True)
class LoadOutcome:
    """What loading has done."""

    loaded: bool
    """False where everything was there already."""
    message: str
    rows: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    """Of all of it: tables, rows, keys and indexes."""


@dataclass(frozen=True)
class CheckResult:
    """What became of one invariant."""

    name: str
    help: str
    verdict: str
    """``holds``, ``broken``, or ``unknown`` with the reason in ``detail``."""
    detail: str = ""


@dataclass
class _State:
    """A row of the table."""

    identity: dict[str, Any]
    state: str
    detail: dict[str, Any]


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class WorkloadData:
    """The data of one workload in one database."""

    def __init__(self, workload: Workload, url: str, connect_timeout: float) -> None:
        """Take the workload and the URL of an endpoint that takes writes; touch nothing yet.

        Making the connection for set-up and checks may take ``connect_timeout`` seconds.
        """
        self.workload = workload
        self._url = url
        self._connect_timeout = connect_timeout
        self.stored = workload.description["dialect"] != "none"
        """Whether there is a database behind the driver at all."""

    @contextmanager
    def _admin(self, answer_timeout_s: float | None = None) -> Iterator[_engine.Admin]:
        admin = _engine.Admin(
            self._url, connect_timeout_s=self._connect_timeout, answer_timeout_s=answer_timeout_s
        )
        try:
            yield admin
        finally:
            admin.close()

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "scale": self.workload.scale,
            "seed": self.workload.data_seed,
            "options": {option["name"]: option["value"] for option in self.workload.description["options"]},
        }

    def _describe(self, identity: Mapping[str, Any]) -> str:
        options = "".join(
            f", {name} {describe_value(value)}" for name, value in identity.get("options", {}).items()
        )
        return f"SF {identity.get('scale'):g}, seed {identity.get('seed')}{options}"

    # --- what is there --------------------------------------------------------------------------------------

    def _read(self, admin: _engine.Admin) -> _State | None:
        if not self._existing(admin, [_TABLE]):
            return None
        name = _quote(self.workload.name)
        _, rows = admin.query(f"SELECT identity, state, detail FROM {_TABLE} WHERE workload = {name}")
        if not rows:
            return None
        identity, state, detail = (cell or "" for cell in rows[0])
        return _State(json.loads(identity), state, json.loads(detail))

    def _write(self, admin: _engine.Admin, state: _State) -> None:
        name, identity = _quote(self.workload.name), _quote(json.dumps(state.identity))
        values = f"{name}, {identity}, {_quote(state.state)}, {_quote(json.dumps(state.detail))}"
        admin.query(
            f"BEGIN; DELETE FROM {_TABLE} WHERE workload = {name}; "
            f"INSERT INTO {_TABLE} VALUES ({values}); COMMIT"
        )

    def _existing(self, admin: _engine.Admin, tables: Sequence[str]) -> list[str]:
        """List which of the tables exist where statements would find them."""
        names = ", ".join(_quote(table) for table in tables)
        _, rows = admin.query(
            "SELECT table_name FROM information_schema.tables "
            f"WHERE table_name IN ({names}) AND table_schema = ANY (current_schemas(false))"
        )
        return [row[0] or "" for row in rows]

    def require(self) -> dict[str, Any]:
        """Make sure that the data is there, whole, and what the study says; give what is known of it.

        Raises ``MeasurementError``: a broken load is never measured.
        """
        if not self.stored:
            return {}
        with self._admin(_BOOK_S) as admin:
            state = self._read(admin)
        name = self.workload.name
        again = "load it with: nephoscope load STUDY"
        if state is None:
            raise MeasurementError(
                f"the data of {name} is not loaded ({self._describe(self._identity)}); {again}"
            )
        if state.state != "loaded":
            raise MeasurementError(f"the data of {name} is incomplete: a load broke off; {again} --force")
        if state.identity != self._identity:
            raise MeasurementError(
                f"the data of {name} is another: loaded is {self._describe(state.identity)}, the study says "
                f"{self._describe(self._identity)}; {again} --force"
            )
        return state.detail

    def is_loaded(self) -> bool:
        """Whether the data is there as the study says. Raises ``MeasurementError`` where it is another's."""
        if not self.stored:
            return True
        with self._admin(_BOOK_S) as admin:
            state = self._read(admin)
        return state is not None and state.state == "loaded" and state.identity == self._identity

    # --- loading --------------------------------------------------------------------------------------------

    def load(self, *, force: bool, threads: int, progress: Progress) -> LoadOutcome:
        """Load the data, unless it is there already; ``force`` loads it anew.

        Raises ``MeasurementError``. Tables that something else has made are never touched.
        """
        name = self.workload.name
        if not self.stored:
            return LoadOutcome(
                loaded=False, message=f"{name}: this driver stores nothing; there is nothing to load"
            )
        started = _engine.monotonic_ns()
        with self._admin() as admin:
            state = self._read(admin)
            if state is not None and state.state == "loaded" and not force:
                if state.identity == self._identity:
                    return LoadOutcome(
                        loaded=False, message=f"{name}: already loaded, {self._describe(state.identity)}"
                    )
                raise MeasurementError(
                    f"{name}: loaded is {self._describe(state.identity)}, the study says "
                    f"{self._describe(self._identity)}; --force loads it anew"
                )
            self._make_room(admin, state)
            self._write(admin, _State(self._identity, "loading", {}))
            self._run_section(admin, "create")
            rows, _ = _engine.load(json.dumps(self.workload.spec()), self._url, threads, progress)
            self._run_section(admin, "keys")
            self._write(admin, _State(self._identity, "loaded", {"rows": dict(rows)}))
        seconds = (_engine.monotonic_ns() - started) / 1e9
        total = sum(count for _, count in rows)
        message = f"{name}: loaded {total:,} rows, {self._describe(self._identity)}, in {seconds:.1f} s"
        return LoadOutcome(loaded=True, message=message, rows=tuple(rows), seconds=seconds)

    def _make_room(self, admin: _engine.Admin, state: _State | None) -> None:
        """Remove our own tables; refuse to touch another's."""
        tables = [table["name"] for table in self.workload.description["tables"]]
        if state is None and (foreign := self._existing(admin, tables)):
            raise MeasurementError(
                f"the table {foreign[0]} exists already and was not made by nephoscope; "
                "use an empty database or schema (nephoscope never drops what it has not made)"
            )
        admin.query(_CREATE)
        if state is not None:
            self._run_section(admin, "drop")

    def _run_section(self, admin: _engine.Admin, section: str) -> None:
        sql = self.workload.description["schema"][section]
        if sql:
            admin.query(sql)

    # --- runs -----------------------------------------------------------------------------------------------

    def begin_run(self, run: str) -> None:
        """Note that a run changes the data: should it be killed, its tallies are lost, and checks must know."""
        with self._noting() as detail:
            detail.setdefault("unfinished", []).append(run)

    def end_run(
        self, run: str, tallies: Mapping[str, Mapping[str, float]], handed_out: Mapping[str, int]
    ) -> None:
        """Note what a run has done: its tallies, and the keys that it has used up."""
        with self._noting() as detail:
            detail["unfinished"] = [other for other in detail.get("unfinished", []) if other != run]
            detail["changed"] = True
            sums = detail.setdefault("tallies", {})
            for name, tally in tallies.items():
                sure, uncertain = sums.get(name, (0.0, 0.0))
                sums[name] = [sure + tally["amount"], uncertain + tally["uncertain"]]
            detail["handed_out"] = dict(handed_out)

    @contextmanager
    def _noting(self) -> Iterator[dict[str, Any]]:
        if not self.stored:
            yield {}
            return
        with self._admin(_BOOK_S) as admin:
            state = self._read(admin)
            if state is None:
                yield {}
                return
            yield state.detail
            self._write(admin, state)

    # --- checking -------------------------------------------------------------------------------------------

    def check(self, *, external: bool = False) -> list[CheckResult]:
        """Check the workload's invariants on the data as it is now.

        Raises ``MeasurementError`` if the data is not there, or a check cannot be run.
        """
        detail = {"changed": True} if external else self.require()
        if not self.stored:
            return []
        checks = {check["name"]: check for check in self.workload.description["checks"]}
        with self._admin() as admin:
            return [
                self._check_one(admin, invariant, checks[invariant["statement"]], detail)
                for invariant in self.workload.description["invariants"]
            ]

    def _check_one(
        self,
        admin: _engine.Admin,
        invariant: Mapping[str, Any],
        check: Mapping[str, Any],
        detail: Mapping[str, Any],
    ) -> CheckResult:
        name, help_text = invariant["statement"], invariant["help"]
        if invariant["when"] == "loaded" and (detail.get("changed") or detail.get("unfinished")):
            return CheckResult(name, help_text, "unknown", "it holds only until a run has changed the data")
        values = {}
        for param in check["params"]:
            kind, _, tally = param.partition("_")
            sure, uncertain = detail.get("tallies", {}).get(tally, (0.0, 0.0))
            values[param] = uncertain if kind == "uncertain" else sure
        if values and (unfinished := detail.get("unfinished")):
            reason = f"the run {unfinished[0]} did not end: what it has added up is not known"
            return CheckResult(name, help_text, "unknown", reason)
        columns, rows = admin.query(_engine.render(check["sql"], values))
        if not rows:
            return CheckResult(name, help_text, "holds")
        first = ", ".join(f"{column} {cell}" for column, cell in zip(columns, rows[0], strict=True))
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        return CheckResult(name, help_text, "broken", first + more)
