"""Nephoscope never drops what it has not made: on every database that stores data, whatever was there before."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from commands import call
from databases import FOREIGN, SERVERS, Server, dialect_of, query, study_of
from nephoscope import _engine
from nephoscope.dialects import DIALECTS, KEYED
from nephoscope.study.packaged import PACKAGED
from sample_studies import one_table_workload, phases, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BRIEF = phases({"duration": "1s", "mix": "RW", "concurrency": 2})
NAMES = {"orders", "customer", "orderline", "nephoscope_data"}


@pytest.fixture(scope="module", params=SERVERS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(dialect: str) -> Iterator[Server]:
    with SERVERS[dialect]() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.new_database()


@pytest.fixture
def postgres_alone(dialect: str) -> None:
    """For what another database has not: roles, schemas, CASCADE."""
    if dialect != "postgres":
        pytest.skip("of another database")


def named(dialect: str, name: str) -> str:
    """Write a name as messages have it."""
    return {"postgres": f"public.{name}", "mysql": f"`{name}`", "sqlite": f'"{name}"'}[dialect]


@pytest.fixture
def study(url: str, tmp_path: Path) -> Path:
    return write_study(tmp_path, study_of(url, BRIEF))


def objects(url: str, dialect: str) -> set[tuple[str | None, ...]]:
    return {tuple(row) for row in query(url, DIALECTS[dialect].objects)}


def besides_the_notes(url: str, dialect: str) -> set[tuple[str | None, ...]]:
    """List what there is: a table that is made commits by itself in MySQL, so that the one of notes stays there."""
    return {row for row in objects(url, dialect) if dialect != "mysql" or row[2] != "`nephoscope_data`"}


def as_role(url: str, role: str) -> str:
    """Give the URL of a role that may make tables, and may do nothing with those of others."""
    query(url, f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA public TO {role}")
    return re.sub(r"//[^@]+@", f"//{role}:x@", url)


def refuse(study: Path, message: str, *, force: bool = True) -> None:
    """Load in every way; all must be refused."""
    options: list[tuple[str, ...]] = [("load",), ("load", "--force")] if force else [("load",)]
    for command, *option in options:
        ended = call(command, study, *option)
        assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err
        assert message in ended.err


def tickets(url: str, folder: Path, **sections: str) -> Path:
    tables = study_of(url, phases({"mix": "ALL", "concurrency": 1}))
    tables["workload"] = {"name": str(one_table_workload(folder, **sections)), "scale": 1}
    return write_study(folder, tables)


# --- what was there before -------------------------------------------------------------------------------------------


def test_every_dialect_of_sql_that_stores_data_is_tested_here() -> None:
    assert set(SERVERS) == set(DIALECTS) == set(FOREIGN)
    spec = json.dumps(
        {"folder": str(PACKAGED / "ycsb"), "options": {}, "scale": 1, "data_seed": 1, "handed_out": {}}
    )
    places = {"noop": "", "sim": "", "sqlite": "/none", "redis": "localhost/0"}
    found = [
        json.loads(_engine.workload(spec, f"{scheme}://{places.get(scheme, 'reader@localhost/none')}"))
        for scheme, _ in _engine.schemes()
    ]
    of_sql = {one["dialect"] for one in found if one["capabilities"]["sql"]}
    assert (of_sql - {"none"}, {one["dialect"] for one in found} - of_sql) == (set(DIALECTS), set(KEYED))


def kinds() -> list[tuple[str, str]]:
    return [(dialect, kind) for dialect in SERVERS for kind in FOREIGN[dialect]]


@pytest.mark.parametrize(("speaks", "kind"), kinds())
def test_what_somebody_else_has_made_is_never_touched(
    dialect: str, url: str, study: Path, speaks: str, kind: str
) -> None:
    if speaks != dialect:
        pytest.skip("of another database")
    query(url, FOREIGN[dialect][kind].format(name="orders"))
    before = objects(url, dialect)
    word = "table" if kind == "partitioned table" else kind
    refuse(study, f"the {word} {named(dialect, 'orders')} exists already and was not made by nephoscope")
    assert call("run", study).code == 1
    assert objects(url, dialect) == before


def test_tables_of_another_workload_are_named_as_such(dialect: str, url: str, tmp_path: Path) -> None:
    study, lua = tickets(url, tmp_path), tmp_path / "tickets" / "workload.lua"
    assert call("load", study).code == 0
    before = objects(url, dialect)
    lua.write_text(lua.read_text().replace('workload "tickets"', 'workload "others"'))
    said = f"the table {named(dialect, 'ticket')} holds data of the workload tickets; others needs another"
    refuse(study, f"{said} database or schema: name one in system.database, or in the URL")
    assert objects(url, dialect) == before


@pytest.mark.usefixtures("postgres_alone")
def test_tables_that_the_role_may_not_touch_are_seen_and_outlast_an_administrator(
    dialect: str, url: str, study: Path, tmp_path: Path
) -> None:
    """A first attempt without privileges must leave nothing that a second one could take for leave to drop."""
    query(url, "CREATE TABLE orders AS SELECT 42 AS precious; CREATE TABLE customer AS SELECT 43 AS precious")
    before = objects(url, dialect)
    ordinary = write_study(tmp_path, study_of(as_role(url, "ordinary"), BRIEF), "ordinary.toml")
    refuse(ordinary, "exists already and was not made by nephoscope")
    assert objects(url, dialect) == before
    refuse(study, "exists already and was not made by nephoscope")
    assert query(url, "SELECT o.precious, c.precious FROM orders o, customer c") == [["42", "43"]]


@pytest.mark.usefixtures("postgres_alone")
def test_what_stands_in_a_later_schema_of_the_search_path_is_seen(
    dialect: str, url: str, tmp_path: Path
) -> None:
    query(url, "CREATE SCHEMA bench; CREATE TABLE orders AS SELECT 42 AS precious")
    within = f"{url}?options={quote('-csearch_path=bench,public')}"
    before = objects(url, dialect)
    refuse(write_study(tmp_path, study_of(within, BRIEF)), "the table public.orders exists already")
    assert objects(url, dialect) == before


def test_a_table_of_notes_that_is_anothers_is_told_by_its_columns(
    dialect: str, url: str, study: Path
) -> None:
    query(url, "CREATE TABLE nephoscope_data AS SELECT 1 AS mine, 2 AS own")
    refuse(
        study,
        f"the table {named(dialect, 'nephoscope_data')}, with the columns mine, own, was not made by nephoscope",
    )
    assert query(url, "SELECT mine, own FROM nephoscope_data") == [["1", "2"]]


def test_a_view_that_has_the_name_of_the_notes_is_refused(dialect: str, url: str, study: Path) -> None:
    columns = "'a' AS workload, 'b' AS identity, 'c' AS state, 'd' AS detail"
    query(url, f"CREATE VIEW nephoscope_data AS SELECT {columns}")
    refuse(study, f"the view {named(dialect, 'nephoscope_data')}, with the columns")


# --- what was put in the place of ours -------------------------------------------------------------------------------


def test_a_table_that_was_put_in_the_place_of_ours_is_not_dropped(
    dialect: str, url: str, study: Path
) -> None:
    assert call("load", study).code == 0
    query(url, "DROP TABLE orders; CREATE TABLE orders AS SELECT 42 AS precious")
    ended = call("load", study, "--force")
    assert ended.code == 1
    assert (
        f"the table {named(dialect, 'orders')} is not the one that nephoscope made, which is gone"
        in ended.err
    )
    assert query(url, "SELECT precious FROM orders") == [["42"]]
    assert query(url, "SELECT count(*) FROM customer") == [["600"]], "all is dropped or nothing"
    query(url, "DROP TABLE orders")
    assert call("load", study, "--force").code == 0


@pytest.mark.usefixtures("postgres_alone")
def test_what_depends_on_our_tables_and_is_anothers_stays(url: str, tmp_path: Path) -> None:
    study = tickets(url, tmp_path, drop="DROP TABLE IF EXISTS ticket CASCADE")
    assert call("load", study).code == 0
    query(url, "CREATE VIEW theirs AS SELECT id FROM ticket")
    ended = call("load", study, "--force")
    assert ended.code == 1
    assert "the section drop of the schema of tickets would drop the view public.theirs" in ended.err
    assert query(url, "SELECT count(*) FROM theirs") == [["5"]]


THEIRS = {
    "TABLE": "CREATE TABLE theirs AS SELECT 42 AS precious",
    "FUNCTION": "CREATE FUNCTION theirs() RETURNS int LANGUAGE sql RETURN 42",
    "TYPE": "CREATE TYPE theirs AS ENUM ('precious')",
    "SCHEMA": "CREATE SCHEMA theirs",
}


@pytest.mark.parametrize("section", ["create", "keys", "drop"])
@pytest.mark.parametrize("kind", THEIRS)
def test_a_schema_cannot_drop_what_it_has_not_made(
    dialect: str, url: str, tmp_path: Path, section: str, kind: str
) -> None:
    if dialect != "postgres" and kind != "TABLE":
        pytest.skip("of another database")
    drops = {
        "create": f"DROP {kind} theirs; CREATE TABLE ticket (id bigint)",
        "keys": f"DROP {kind} theirs",
        "drop": f"DROP TABLE IF EXISTS ticket; DROP {kind} IF EXISTS theirs",
    }
    study = tickets(url, tmp_path, **{section: drops[section]})
    if section == "drop":
        assert call("load", study).code == 0
    query(url, THEIRS[kind])
    ended = call("load", study, "--force")
    if dialect == "mysql" and section == "drop":
        assert ended.code == 0, "what was made is dropped object by object"
    else:
        assert ended.code == 1
        word = "has DROP TABLE" if dialect == "mysql" else f"would drop the {kind.lower()} "
        assert f"the section {section} of the schema of tickets {word}" in ended.err
    query(url, f"DROP {kind} theirs")  # it is there still


@pytest.mark.usefixtures("postgres_alone")
def test_what_a_schema_has_made_besides_tables_is_dropped_with_them(
    dialect: str, url: str, tmp_path: Path
) -> None:
    study = tickets(
        url,
        tmp_path,
        create="CREATE TYPE colour AS ENUM ('red'); CREATE TABLE ticket (id bigint, c colour)",
        keys="CREATE VIEW red AS SELECT id FROM ticket; CREATE SEQUENCE number",
        drop="DROP SEQUENCE IF EXISTS number; DROP TABLE IF EXISTS ticket CASCADE; DROP TYPE IF EXISTS colour",
    )
    names = []
    for _ in range(2):
        ended = call("load", study, "--force")
        assert ended.code == 0, ended.err
        names.append(sorted(str(row[2]) for row in objects(url, dialect)))
    assert names[0] == names[1]


# --- all or nothing --------------------------------------------------------------------------------------------------


def test_tables_that_cannot_be_made_leave_no_trace(dialect: str, url: str, tmp_path: Path) -> None:
    study = tickets(url, tmp_path, create="CREATE TABLE ticket (id bigint); CREATE TABLE ticket (id int)")
    before = objects(url, dialect)
    words = {
        "postgres": 'relation "ticket" already exists',
        "mysql": "Table 'ticket' already exists",
        "sqlite": "table ticket already exists",
    }
    refuse(study, f"the section create of the schema of tickets: {words[dialect]}")
    assert besides_the_notes(url, dialect) == before


@pytest.mark.usefixtures("postgres_alone")
def test_tables_that_cannot_be_made_anew_leave_the_old_ones(url: str, tmp_path: Path) -> None:
    study = tickets(url, tmp_path)
    assert call("load", study).code == 0
    schema = tmp_path / "tickets" / "schema.sql"
    sound = schema.read_text()
    schema.write_text(sound.replace("ticket (id bigint)", "ticket (id nothing)"))
    assert call("load", study, "--force").code == 1
    assert query(url, "SELECT count(*) FROM ticket") == [["5"]]
    schema.write_text(sound)
    assert call("check", study).code == 0


@pytest.mark.parametrize("section", ["create", "keys"])
def test_a_section_that_ends_its_transaction_is_refused(
    dialect: str, url: str, tmp_path: Path, section: str
) -> None:
    if dialect == "mysql":
        pytest.skip("each statement that defines data ends its transaction")
    sql = {
        "create": "CREATE TABLE ticket (id bigint)",
        "keys": "CREATE UNIQUE INDEX ticket_id ON ticket (id)",
    }
    begin = "BEGIN; " if dialect == "postgres" else ""  # SQLite refuses a second one itself
    study = tickets(url, tmp_path, **{section: f"{begin}{sql[section]}; COMMIT"})
    refuse(study, f"the section {section} of the schema of tickets ends the transaction", force=False)
    # What it has committed is not on record: it stays.
    assert query(url, "SELECT count(*) - count(*) FROM ticket") == [["0"]]


def test_a_schema_that_does_not_make_its_table_is_refused(dialect: str, url: str, tmp_path: Path) -> None:
    study = tickets(url, tmp_path, create="CREATE TABLE other (id bigint)")
    before = objects(url, dialect)
    refuse(study, "the section create of the schema of tickets does not make its table ticket")
    assert besides_the_notes(url, dialect) == before


# --- records that are not what they should be ------------------------------------------------------------------------


def set_record(url: str, **columns: str) -> None:
    literal = DIALECTS[dialect_of(url)].literal
    changes = ", ".join(f"{name} = {literal(value)}" for name, value in columns.items())
    query(url, f"UPDATE nephoscope_data SET {changes}")


DAMAGE = {
    "no JSON": ({"detail": "{"}, "detail: "),
    "deep": ({"detail": "[" * 100_000}, "detail: "),
    "another type": ({"detail": '{"unfinished": 7}'}, "detail.unfinished: "),
    "an old form that is wrong": ({"detail": '{"unfinished": [7]}'}, "detail.unfinished.0: "),
    "not a number": ({"detail": '{"tallies": {"paid": [NaN, 0]}}'}, "detail.tallies.paid.0: "),
    "half a tally": ({"detail": '{"tallies": {"paid": [1]}}'}, "detail.tallies.paid"),
    "negative keys": ({"detail": '{"handed_out": {"orderline": -1}}'}, "detail.handed_out.orderline: "),
    "too many keys": ({"detail": f'{{"handed_out": {{"orderline": {2**64}}}}}'}, "detail.handed_out.orderline: "),
    "a number of many digits": ({"identity": '{"scale": 1' + "0" * 5000 + "}"}, "identity"),
    "a key missing": ({"identity": '{"scale": 1, "seed": 7}'}, "identity.options: it is missing"),
    "an endless scale": ({"identity": '{"scale": Infinity, "seed": 7, "options": {}}'}, "identity.scale: "),
    "no state": ({"state": "lost"}, "state: 'lost' is neither loading nor loaded"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_told_and_mended_by_force(
    url: str, study: Path, tmp_path: Path, damage: str
) -> None:
    columns, words = DAMAGE[damage]
    assert call("load", study).code == 0
    made = json.loads(str(query(url, "SELECT detail FROM nephoscope_data")[0][0]))["made"]
    set_record(url, **columns)
    for command in ("load", "check", "run"):
        options = ("--out", tmp_path / "runs") if command == "run" else ()
        ended = call(command, study, *options)
        assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err
        assert f"the record of sales in the table nephoscope_data is damaged ({words}" in ended.err
        assert ended.err.endswith(f"to load it anew: nephoscope load {study} --force\n")
    assert not (tmp_path / "runs").exists()
    if damage == "no state":
        assert made, "what was made can still be read"
    mended = call("load", study, "--force")
    assert mended.code == 0, mended.err
    assert call("check", study).code == 0


def test_a_record_that_cannot_be_read_gives_no_leave_to_drop_what_looks_different(
    dialect: str, url: str, study: Path
) -> None:
    assert call("load", study).code == 0
    query(url, "DROP TABLE orders; CREATE TABLE orders AS SELECT 42 AS precious")
    set_record(url, detail="{")
    before = objects(url, dialect)
    ended = call("load", study, "--force")
    assert ended.code == 1
    assert (
        f"{named(dialect, 'orders')} exists already, and no record says that nephoscope made it" in ended.err
    )
    assert objects(url, dialect) == before


def test_a_record_of_an_earlier_version_is_known_again(url: str, study: Path) -> None:
    """Earlier versions did not note what they made; a load that was completed tells nevertheless."""
    assert call("load", study).code == 0
    set_record(
        url, detail='{"rows": {"customer": 600}, "unfinished": ["20260101T000000Z-old"], "changed": true}'
    )
    checked = json.loads(call("check", study, "--json").out)
    assert any("the run 20260101T000000Z-old did not end" in result["detail"] for result in checked)
    assert call("load", study).out.startswith("sales: already loaded")
    assert call("load", study, "--force").code == 0


def test_an_earlier_versions_load_that_broke_off_gives_no_leave_to_drop(
    dialect: str, url: str, study: Path
) -> None:
    """It wrote so before it knew whether it could make the tables."""
    assert call("load", study).code == 0
    set_record(url, detail="{}", state="loading")
    before = objects(url, dialect)
    refuse(study, "exists already, and no record says that nephoscope made it")
    assert objects(url, dialect) == before


ODD_BACKSLASHES: Mapping[str, Mapping[str, str]] = {
    "postgres": {"standard_conforming_strings": "off"},
    "mysql": {"sql_mode": "NO_BACKSLASH_ESCAPES,ANSI_QUOTES"},
}


@pytest.mark.parametrize("speaks", ODD_BACKSLASHES)
def test_texts_are_kept_whatever_the_server_takes_a_backslash_for(speaks: str, tmp_path: Path) -> None:
    with SERVERS[speaks](**ODD_BACKSLASHES[speaks]) as server:
        study = tickets(server.new_database(), tmp_path)
        loaded = call("load", study)
        assert loaded.code == 0, loaded.err
        assert call("load", study).out.startswith("tickets: already loaded")
        assert call("run", study, "--out", tmp_path / "runs").code == 0
        assert call("check", study).code == 0


def test_a_load_that_goes_on_is_not_replaced_by_another(
    dialect: str, url: str, study: Path, tmp_path: Path
) -> None:
    """Only one that has ended without its end may be replaced; the label of its session tells."""
    if dialect == "sqlite":
        pytest.skip("no session sees another")
    label, speaks = "nephoscope abc123 load of sales", DIALECTS[dialect]
    assert call("load", study).code == 0
    held = _engine.Admin(url, on_connect=[speaks.label.format(label=speaks.literal(label))])
    detail = json.loads(str(query(url, "SELECT detail FROM nephoscope_data")[0][0]))
    set_record(url, state="loading", detail=json.dumps({**detail, "loader": label}))
    refuse(study, "the data of sales is in use: load of sales goes on; wait for its end")
    if dialect == "postgres":
        ordinary = write_study(tmp_path, study_of(as_role(url, "watcher"), BRIEF), "ordinary.toml")
        query(url, "GRANT ALL ON nephoscope_data TO watcher")
        refuse(ordinary, "the data of sales is in use: load of sales goes on; wait for its end")
    held.close()
    assert call("load", study).code == 0


@pytest.mark.parametrize("broke_off", ["before", "after"])
def test_a_load_that_broke_off_among_its_tables_is_begun_anew(
    dialect: str, url: str, study: Path, broke_off: str
) -> None:
    """Where each statement commits, the record says beforehand that tables come under the workload's names."""
    if dialect != "mysql":
        pytest.skip("tables are made whole or not at all")
    assert call("load", study).code == 0
    detail = json.loads(str(query(url, "SELECT detail FROM nephoscope_data")[0][0]))
    made = detail["made"] if broke_off == "before" else []
    query(url, "ALTER TABLE orders COMMENT = ''; DROP TABLE customer")
    set_record(url, state="loading", detail=json.dumps({"made": made, "is_making": True}))
    query(url, "CREATE TABLE theirs AS SELECT 42 AS precious")
    assert call("load", study).code == 0
    assert call("check", study).code == 0
    assert query(url, "SELECT precious FROM theirs") == [["42"]]
