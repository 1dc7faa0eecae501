"""Tenants: their URLs, the room that is made for them, and what a run loads, stores and checks for each."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from commands import call
from databases import Server, query, running_server, study_of
from nephoscope import _engine
from nephoscope.errors import InputError, MeasurementError
from nephoscope.settings.resources import Resources
from nephoscope.settings.tenants import TenantsTable
from nephoscope.store import StoredRun
from nephoscope.study.reading import make_study
from nephoscope.systems.base import System
from nephoscope.systems.tenants import check_tenants, make_room, tenants_of
from sample_studies import phases, sim_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREE = {"number": 3}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def tenant_url(url: str, share: str) -> str:
    table = TenantsTable.model_validate({"number": 2, "share": share, "prefix": "t"})
    return tenants_of(table, System(rw=(url,)))[1].rw[0]


# --- URLs


@pytest.mark.parametrize(
    ("url", "schema", "database"),
    [
        ("postgresql://h/d", "postgresql://h/d?options=-csearch_path%3Dt2", "postgresql://h/t2"),
        ("postgres://u:p%40@h1:1,h2:2", "postgres://u:p%40@h1:1,h2:2?options=-csearch_path%3Dt2",
         "postgres://u:p%40@h1:1,h2:2/t2"),
        ("postgresql://h/d?password=a+b%26", "postgresql://h/d?password=a+b%26&options=-csearch_path%3Dt2",
         "postgresql://h/t2?password=a+b%26"),
        ("postgresql://h/d?options=-cwork_mem%3D1MB", "postgresql://h/d?options=-cwork_mem%3D1MB%20-csearch_path%3Dt2",
         "postgresql://h/t2?options=-cwork_mem%3D1MB"),
        ("postgresql://h?dbname=d", "postgresql://h?dbname=d&options=-csearch_path%3Dt2", "postgresql://h/t2"),
        ("sim://x?capacity=2", "sim://x?capacity=2", "sim://x?capacity=2"),
    ],
)  # fmt: skip
def test_a_tenants_url_is_the_systems_but_for_where_its_data_is(
    monkeypatch: pytest.MonkeyPatch, url: str, schema: str, database: str
) -> None:
    monkeypatch.delenv("PGOPTIONS", raising=False)
    monkeypatch.setenv("PGUSER", "u")
    assert (tenant_url(url, "schema"), tenant_url(url, "database")) == (schema, database)
    _engine.check_url(schema)
    _engine.check_url(database)


def test_what_the_environment_sets_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=1MB")
    options = parse_qs(urlsplit(tenant_url("postgresql://h/d", "schema")).query)["options"]
    assert options == ["-c work_mem=1MB -csearch_path=t2"]


def test_a_server_each_has_its_own_urls_and_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", "u")
    monkeypatch.setenv("SECOND", "postgresql://u:geheim@second/d")
    small, large = (Resources(vcores=cores, memory_gb=1, storage_gb=1) for cores in (1, 8))
    servers = [
        {"rw": "${SECOND}", "ro": ["postgresql://r/d"]},
        {"rw": "postgresql://third/d", "resources": large},
    ]
    table = TenantsTable.model_validate({**THREE, "share": "server", "servers": servers})
    first, second, third = tenants_of(table, System(rw=("postgresql://first/d",), resources=small))
    assert [tenant.name for tenant in (first, second, third)] == ["tenant1", "tenant2", "tenant3"]
    assert (first.rw, second.rw, second.ro) == (
        ("postgresql://first/d",),
        ("postgresql://u:geheim@second/d",),
        ("postgresql://r/d",),
    )
    assert [tenant.resources for tenant in (first, second, third)] == [small, small, large]
    assert "geheim" not in f"{second!r} {second.facts()}"


def test_a_stored_study_has_no_password_of_a_tenant() -> None:
    tables = {
        **sim_study(),
        "tenants": {"number": 2, "share": "server", "servers": [{"rw": "postgresql://u:geheim@h/d"}]},
    }
    text = make_study(tables, "test").to_toml()
    assert "geheim" not in text
    assert make_study(tomllib.loads(text), "test").tenants.number == 2


def test_one_tenant_is_the_system_itself() -> None:
    (only,) = tenants_of(TenantsTable(), System(rw=("postgresql://h/d",), ro=("postgresql://r/d",)))
    assert (only.name, only.rw, only.ro) == ("default", ("postgresql://h/d",), ("postgresql://r/d",))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"number": 0}, "tenants.number: input should be greater than or equal to 1; it is 0"),
        ({"number": 2, "share": "machine"}, "tenants.share: input should be 'schema', 'database' or 'server'"),
        ({"number": 2, "share": "server"}, 'tenants: 2 tenants with share = "server" need 1 servers beside'),
        ({"number": 2, "servers": [{"rw": "sim://"}]}, 'tenants: 2 tenants with share = "schema" need 0 servers'),
        ({"number": 2, "prefix": "Robert'; DROP"}, "tenants.prefix: string should match pattern"),
        ({"number": 2, "share": "server", "servers": [{"rw": "${UNSET_HERE}"}]},
         "tenants.servers.0.rw: the environment variable UNSET_HERE is not set"),
        ({"number": 2, "share": "server", "servers": [{"rw": "nowhere"}]}, "tenants.servers.0.rw: this is no URL"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_tenants_is_said_before_anything_is_touched(
    tmp_path: Path, table: dict[str, Any], message: str
) -> None:
    study = write_study(tmp_path, {**sim_study(), "tenants": table})
    ended = call("run", study, "--out", tmp_path / "runs")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert not (tmp_path / "runs").exists()


def test_mysql_has_no_schemas_beside_databases() -> None:
    table = TenantsTable.model_validate(THREE)
    with pytest.raises(InputError, match='it must be "database" or "server"'):
        check_tenants(table, "mysql://h/d")


# --- data and runs


@pytest.mark.parametrize("share", ["schema", "database"])
def test_each_tenant_has_its_own_data(server: Server, tmp_path: Path, share: str) -> None:
    url = server.new_database()
    study = study_of(url, phases({"concurrency": 2, "duration": "500ms", "mix": "WO"}))
    study["tenants"] = {"number": 2, "share": share, "prefix": f"its_{share}_"}
    path = write_study(tmp_path, study)
    refused = call("run", path, "--out", tmp_path / "runs", "--set", "workload.load=never")
    assert (refused.code, refused.err.partition(" (")[0]) == (
        1,
        "nephoscope: tenant1: the data of sales is not loaded",
    )

    loaded = call("load", path)
    assert (loaded.code, loaded.err) == (0, "")
    for place, line in enumerate(loaded.out.splitlines(), start=1):
        assert line.startswith(f"tenant{place}: sales: loaded ")
    # Nothing lies where the system's own URL leads to.
    there = query(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
    assert there == [["0"]]

    ran = call("run", path, "--out", tmp_path / "runs")
    assert (ran.code, ran.err) == (0, "")
    checked = call("check", path, "--json")
    verdicts = json.loads(checked.out)
    assert {(one["tenant"], one["verdict"]) for one in verdicts} >= {
        ("tenant1", "holds"),
        ("tenant2", "holds"),
    }
    assert all(one["verdict"] != "broken" for one in verdicts)
    # The load of an evaluator that knows of no tenants is the first one's.
    run = StoredRun((tmp_path / "runs" / "latest").resolve())
    committed: dict[str, int] = {}
    for tenant, count in zip(
        *(run.intervals.column(c).to_pylist() for c in ("tenant", "committed")), strict=True
    ):
        committed[tenant] = committed.get(tenant, 0) + count
    assert committed["tenant1"] > 0
    assert not committed.get("tenant2")
    each = run.manifest["system"]["tenants"]["each"]
    assert [tenant["name"] for tenant in each] == ["tenant1", "tenant2"]
    assert len({tenant["rw"][0] for tenant in each}) == 2


def test_room_that_is_there_is_left_as_it_is(server: Server) -> None:
    url = server.new_database()
    table = TenantsTable.model_validate({**THREE, "prefix": "again"})
    system = System(rw=(url,))
    make_room(table, system, 10.0)
    query(url, "CREATE TABLE again2.kept AS SELECT 1 AS one")
    make_room(table, system, 10.0)
    assert query(tenants_of(table, system)[1].rw[0], "SELECT one FROM kept") == [["1"]]


def test_room_that_may_not_be_made_is_an_error(server: Server) -> None:
    url = server.new_database()
    query(url, "CREATE ROLE guest LOGIN PASSWORD 'guest'")
    host = url.rpartition("@")[2]
    table = TenantsTable.model_validate(THREE)
    with pytest.raises(MeasurementError, match="permission denied"):
        make_room(table, System(rw=(f"postgresql://guest:guest@{host}",)), 10.0)
