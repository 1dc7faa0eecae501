"""Services that speak a known protocol: their files, and what a study makes of them."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.errors import InputError
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.study.reading import LoadTable, make_study
from nephoscope.study.services import parsed, service, service_names
from sample_studies import write_study

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    "alloydb", "aurora-mysql", "aurora-postgresql", "cockroachdb", "neon", "polardb-mysql", "polardb-postgresql",
    "tidb", "yugabytedb",
)  # fmt: skip
FILE = """
name = "mine"
product = "Mine"
scheme = "postgresql"
date = "2026-11"
notice = "not run against the service itself"
[[setting]]
key = "retry.attempts"
value = 3
source = "its manual"
"""


def study(name: str, scheme: str, **load: Any) -> dict[str, Any]:
    return {
        "study": {"name": "service"},
        "system": {"provider": "url", "rw": f"{scheme}://bench@db.example.com/bench"},
        "load": {"service": name, **load},
        "measure": [{"evaluator": "throughput"}],
    }


def test_there_are_files_of_the_services() -> None:
    assert service_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_service_makes_a_study_that_can_be_run(name: str) -> None:
    one = service(name)
    found = make_study(study(name, one.scheme), name)
    prepare(found, any_url(found))
    wanted: dict[str, Any] = {}
    for entry in one.setting:
        first, _, second = entry.key.partition(".")
        if second:
            wanted.setdefault(first, {})[second] = entry.value
        else:
            wanted[first] = entry.value
    alone = found.load.model_copy(update={"service": None})
    assert alone == LoadTable.model_validate(wanted)
    assert alone != LoadTable(), "it says nothing but the defaults"
    assert "run against the service itself" in one.notice


def test_what_a_study_says_itself_stays() -> None:
    given = {"retry": {"attempts": 9, "backoff": "1ms"}}
    load = make_study(study("cockroachdb", "postgresql", **given), "mine").load
    assert (load.retry.attempts, load.retry.backoff, load.retry.backoff_max) == (9, 0.001, 1.6)
    assert load.retry.classes == ["serialization"]
    assert load.isolation == "serializable"
    assert given == {"retry": {"attempts": 9, "backoff": "1ms"}}, "what was given is not changed"


def test_a_stored_study_means_the_same_again() -> None:
    found = make_study(study("tidb", "mysql"), "mine")
    stored = tomllib.loads(found.to_toml())
    assert make_study(stored, "again") == found
    del stored["load"]["service"]
    alone = make_study(stored, "without it").load
    assert alone == found.load.model_copy(update={"service": None}), "every value is written out"


@pytest.mark.parametrize("url", ["postgresql://bench@db.example.com/bench", "sqlite:///tmp/bench.db"])
def test_a_service_of_another_driver_is_refused(url: str) -> None:
    scheme = url.partition(":")[0]
    given = study("tidb", scheme)
    given["system"]["rw"] = url
    found = make_study(given, "mine")
    message = f"^load.service: tidb is reached by mysql://, and this system by {scheme}://$"
    with pytest.raises(InputError, match=message):
        prepare(found, any_url(found))


@pytest.mark.parametrize("name", ['"oracle"', "3", '["tidb"]', '"../tidb"'])
def test_a_service_that_is_not_there_is_one_message(name: str, tmp_path: Path) -> None:
    file = write_study(tmp_path, study("tidb", "mysql"))
    done = call("run", str(file), "--set", f"load.service={name}")
    assert done.code == 2
    assert "load.service: " in done.err
    assert "Traceback" not in done.err


def test_a_file_is_read() -> None:
    (entry,) = parsed(FILE.encode(), "mine").setting
    assert (entry.key, entry.value, entry.source) == ("retry.attempts", 3, "its manual")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', "", "service mine.name: it is missing"),
        ('name = "mine"', 'name = "other"', "service mine: its name is 'other', unlike its file's"),
        ('"postgresql"', '"oracle"', "service mine.scheme: a scheme is one of postgresql, "),
        ('source = "its manual"', "", "service mine.setting.0.source: it is missing"),
        ('source = "its manual"', 'source = ""', "service mine.setting.0.source: "),
        ('date = "2026-11"', 'date = "lately"', "service mine.date: "),
        ("[[setting]]", "[[settings]]", "service mine.settings: there is no such key"),
        ('name = "mine"', "name = ", "service mine: not a TOML file"),
    ],
)
def test_a_wrong_file_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parsed(FILE.replace(old, new, 1).encode(), "mine")
    assert message in str(raised.value)


def test_a_file_that_gives_a_key_twice_is_refused() -> None:
    twice = FILE + FILE[FILE.index("[[setting]]") :]
    with pytest.raises(InputError, match=r"service mine: the same key twice: retry\.attempts"):
        parsed(twice.encode(), "mine")
