"""Files that a user names and that are no files, or hold what no file should: one message, at once, exit code 2."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from commands import Ended, call, finish, start
from nephoscope.files import USER_FILE_BYTES
from sample_studies import sim_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = '[[system]]\nname = "a"\ncost_per_minute = 1.0\n'
TAKERS = (
    "run",
    "load",
    "check",
    "score",
    "run with a price book",
    "run with a starred price book",
    "score with one",
)


def given(folder: Path, taker: str, file: Path | str) -> list[str | Path]:
    """Make the command that is given a file."""
    match taker:
        case "run with a price book" | "run with a starred price book":
            key = "starred" if "starred" in taker else "price_book"
            return ["run", write_study(folder, sim_study() | {"cost": {key: str(file)}}, "good.toml")]
        case "score with one":
            (folder / "figures.toml").write_text(f'{FIGURES}[cost]\nprice_book = "{file}"\n')
            return ["score", folder / "figures.toml"]
        case _:
            return [taker, file]


def refused(folder: Path, *command: str | Path) -> str:
    """Run a command in a process of its own: it might wait. Gives its message."""
    with start(*command, cwd=folder) as process:
        return message_of(finish(process, 30.0))


def message_of(ended: Ended) -> str:
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.startswith("nephoscope: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    return ended.err


@pytest.mark.parametrize("taker", TAKERS)
def test_a_pipe_is_not_waited_for(tmp_path: Path, taker: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    message = refused(tmp_path, *given(tmp_path, taker, tmp_path / "pipe.toml"))
    assert "pipe.toml: " in message
    assert message.endswith("it is a pipe (FIFO); allowed: a regular file\n")


@pytest.mark.parametrize("taker", TAKERS)
def test_a_device_is_not_read(tmp_path: Path, taker: str) -> None:
    message = refused(tmp_path, *given(tmp_path, taker, "/dev/zero"))
    assert message.endswith("it is a device; allowed: a regular file\n")


DEEP = b"a = " + b"[" * 5000 + b"]" * 5000
CONTENTS = {
    "nested too deep": (DEEP, "it is nested too deep; allowed are 64 levels"),
    "tables nested too deep": (
        b".".join([b"a"] * 5000) + b" = 1",
        "it is nested too deep; allowed are 64 levels",
    ),
    "many digits": (b"a = " + b"9" * 5000, "an integer is larger than 64 bits hold"),
    "more than 64 bits": (b"a = 9223372036854775808", "an integer is larger than 64 bits hold"),
    "a NUL byte": (b"a = 'x\0y'", "Found invalid character '\\x00'"),
    "no UTF-8": (b"a = '\xff'", "'utf-8' codec can't decode byte 0xff"),
    "too large": (b"#" * (USER_FILE_BYTES + 1), "it is larger than 16 MiB"),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("name", CONTENTS)
def test_what_no_file_should_hold_is_refused(tmp_path: Path, taker: str, name: str) -> None:
    content, said = CONTENTS[name]
    file = tmp_path / "hostile.toml"
    file.write_bytes(content)
    message = message_of(call(*given(tmp_path, taker, file)))
    assert "hostile.toml: " in message
    assert said in message


@pytest.mark.parametrize(
    "setting", ["a=" + "[" * 5000 + "]" * 5000, ".".join(["a"] * 5000) + "=1", "load.threads=" + "9" * 5000]
)
def test_a_setting_of_the_command_line_is_not_deeper_than_a_file(tmp_path: Path, setting: str) -> None:
    study = write_study(tmp_path, sim_study())
    ended = call("run", study, "--set", setting)
    assert ended.code == 2
    assert ended.err.startswith("nephoscope: ")


@pytest.mark.parametrize("table", [{"workload": {"name": "a\0b"}}, {"workload": {"name": "a" * 5000}}])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_name_that_is_no_path_is_no_workload(
    tmp_path: Path, table: dict[str, dict[str, str]], slash: str
) -> None:
    tables = sim_study() | {"workload": {"name": table["workload"]["name"] + slash}}
    assert "is no workload" in message_of(
        call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs")
    )


@pytest.mark.parametrize("name", ["a\0b.toml", "a" * 5000 + ".toml", "~nobody-of-this-name/x.toml"])
def test_a_name_that_is_no_path_is_no_price_book(tmp_path: Path, name: str) -> None:
    tables = sim_study() | {"cost": {"price_book": name}}
    assert "price book" in message_of(call("run", write_study(tmp_path, tables), "--out", tmp_path / "runs"))
    (tmp_path / "figures.toml").write_text(
        FIGURES + '[cost]\nprice_book = "' + name.replace("\0", "\\u0000") + '"\n'
    )
    assert "price book" in message_of(call("score", tmp_path / "figures.toml"))


def test_a_name_of_a_study_that_is_too_long_is_told() -> None:
    assert "there is no such file" in message_of(call("run", "a" * 5000))
