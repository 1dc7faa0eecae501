"""Which changes of a workload make its data another: tables and schema, and options that the data depends on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commands import call
from databases import query
from sample_studies import phases, write_study

if TYPE_CHECKING:
    from pathlib import Path

BASE = """local w = workload "base"
local wide = w:option("wide", "boolean", false, "wide keys")
local batch = w:option("batch", "integer", 5, "rows at a time", { data = false })
local kind = w:option("kind", { "int", "bigint" }, "int", "of the column", { data = false })
local rows = require "rows"
w:table("item", { rows = rows, columns = { { "i_id", serial() } } })
w:schema("create", "CREATE TABLE item (i_id " .. kind .. ")")
w:schema("drop", "DROP TABLE IF EXISTS item")
w:statement("find", "SELECT i_id FROM item WHERE i_id = :id")
w:transaction("read", { read_only = true }, function(tx, pick) tx:one("find", pick.item()) end)
w:mix("RO", { read = 1 })
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a workload that extends another, on SQLite."""
    for name in ("base", "mine"):
        tmp_path.joinpath(name).mkdir()
    tmp_path.joinpath("base", "workload.lua").write_text(BASE)
    tmp_path.joinpath("base", "rows.lua").write_text("return 10")
    tmp_path.joinpath("mine", "workload.lua").write_text(
        'local w = workload "mine"\nw:extends "base"\nw:mix("MINE", { read = 1 })'
    )
    tables = {
        "study": {"name": "identity"},
        "system": {"provider": "url", "rw": f"sqlite://{tmp_path}/data.db"},
        "workload": {"name": str(tmp_path / "mine")},
        "measure": [phases({"duration": "1s", "mix": "MINE", "concurrency": 1})],
    }
    return write_study(tmp_path, tables)


def load(study: Path, *settings: str) -> str:
    arguments = [part for setting in settings for part in ("--set", f"workload.options.{setting}")]
    ended = call("load", study, *arguments)
    return (ended.out if ended.code == 0 else ended.err).strip()


def test_an_option_that_is_not_of_the_data_can_change(study: Path) -> None:
    assert load(study).startswith("mine: loaded 10 rows, SF 1, seed 7, wide False, in ")
    assert load(study, "batch=7") == "mine: already loaded, SF 1, seed 7, wide False"
    refused = load(study, "wide=true")
    assert "loaded is SF 1, seed 7, wide False, the study says SF 1, seed 7, wide True" in refused


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("rows.lua", "return 11"),
        ("workload.lua", BASE.replace('"RO"', '"ALL"').replace("item (i", "item ( i")),
    ],
)
def test_other_tables_and_another_schema_are_other_data(study: Path, file: str, text: str) -> None:
    load(study)
    study.parent.joinpath("base", file).write_text(text)
    expected = (
        "loaded is SF 1, seed 7, wide False, with other tables or another schema than the workload has now"
    )
    assert expected in load(study)
    assert expected in call("check", study).err


def test_an_option_of_the_run_that_changes_the_schema_after_all_is_noticed(study: Path) -> None:
    load(study)
    assert "with other tables or another schema" in load(study, "kind='bigint'")


def test_what_the_data_does_not_depend_on_can_change(study: Path) -> None:
    load(study)
    text = BASE.replace('"RO"', '"ALL"').replace("SELECT i_id", "SELECT i_id AS id")
    study.parent.joinpath("base", "workload.lua").write_text(text)
    assert load(study) == "mine: already loaded, SF 1, seed 7, wide False"


def test_data_of_an_earlier_version_is_known_again(study: Path) -> None:
    load(study)
    url = f"sqlite://{study.parent}/data.db"
    [[identity]] = query(url, "SELECT identity FROM nephoscope_data")
    earlier = {key: value for key, value in json.loads(identity or "").items() if key != "tables"}
    query(url, f"UPDATE nephoscope_data SET identity = '{json.dumps(earlier)}'")
    assert load(study) == "mine: already loaded, SF 1, seed 7, wide False"


def test_the_manifest_has_the_hashes_of_all_files(study: Path) -> None:
    out = study.parent / "runs"
    assert call("run", study, "--out", out).code == 0
    manifest = json.loads((out / "latest" / "manifest.json").read_text())
    assert list(manifest["workload"]["files"]) == ["workload.lua", "base/workload.lua", "base/rows.lua"]
