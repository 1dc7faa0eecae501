r"""Foreign text commands no terminal, is no markup, and means nothing in Markdown or in a spreadsheet."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import unicodedata
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv
from rich.console import Group
from rich.text import Text

from commands import call, finish, start
from nephoscope.cli.live import JsonView, LineView, VisibleConsole
from nephoscope.tables.model import Column, Table, markdown, of_texts, terminal, write_tables
from nephoscope.visible import VisibleFormatter, json_text, visible

if TYPE_CHECKING:
    from pathlib import Path

CLIPBOARD = "\x1b]52;c;QUFB\x07"
HOSTILE = f"[/x] [bold]b[/] \\[ {CLIPBOARD}\ra\x9b31m\x7f \u202egnp.exe\u200b"
SHOWN = r"[/x] [bold]b[/] \[ \x1b]52;c;QUFB\x07\ra\x9b31m\x7f \u202egnp.exe\u200b"
ANYTHING = st.text(st.characters(categories=None), max_size=40)


def commands(text: str) -> list[str]:
    """Return the characters that should not have come through."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [one for one in text if unicodedata.category(one) in hidden and one not in "\n\t"]


@given(ANYTHING)
def test_what_is_visible_commands_nothing_and_keeps_the_rest(text: str) -> None:
    shown = visible(text)
    assert not commands(shown)
    assert visible(shown) == shown
    kept = re.sub(r"\\([abtnvfr]|x..|u....|U........)", "", visible(text.replace("\\", "")))
    assert kept == "".join(one for one in text if not commands(one) and one != "\\")


def test_each_kind_has_its_escape() -> None:
    assert visible("\x1b\r\x7f\x9b\u202e\u200b\ufeff\u2028\ud800\U000e0041") == (
        r"\x1b\r\x7f\x9b\u202e\u200b\ufeff\u2028\ud800\U000e0041"
    )
    assert visible("é 漢 🚀\n\tµs") == "é 漢 🚀\n\tµs"


@pytest.mark.parametrize("as_text", [False, True])
@given(text=ANYTHING)
def test_the_console_prints_no_text_as_a_command(*, as_text: bool, text: str) -> None:
    out = io.StringIO()
    console = VisibleConsole(width=120)
    console.file = out
    console.print(Group(Text(text)) if as_text else text)
    console.print(terminal(of_texts(text, text, ["a", text], [[text, text]])))
    assert not commands(out.getvalue())


@pytest.mark.parametrize("before", [["report"], ["run"], ["score"], []])
def test_errors_of_the_command_line_are_shown_as_they_are(before: list[str]) -> None:
    name = HOSTILE.replace("\\", "")  # which the parser of commands doubles
    ended = call(*before, name)
    assert ended.code == 2
    assert SHOWN.replace("\\[", "[") in ended.err
    assert ended.err.startswith("nephoscope: ")
    assert not commands(ended.err)


def test_what_happens_in_a_run_is_shown_as_it_is(tmp_path: Path) -> None:
    out = io.StringIO()
    console = VisibleConsole(width=20)
    console.file = out
    view = LineView(console)
    view.say(HOSTILE)
    view.error({"class": HOSTILE, "count": 1, "transaction": HOSTILE, "message": HOSTILE})
    view.begin(tmp_path / HOSTILE.replace("/", ""), 1.0)
    first, second, third = out.getvalue().splitlines()
    assert first == SHOWN
    assert second == f"error ({SHOWN}) in {SHOWN}: {SHOWN}"
    assert SHOWN.replace("/", "") in third


def test_json_lines_are_printable_and_say_the_same() -> None:
    with redirect_stdout(io.StringIO()) as out:
        JsonView(VisibleConsole()).say(HOSTILE)
    assert out.getvalue().rstrip("\n").isprintable()
    assert out.getvalue().isascii()
    assert json.loads(out.getvalue()) == {"event": "message", "message": HOSTILE}
    assert json.loads(json_text([HOSTILE])) == [HOSTILE]


def test_the_log_is_visible() -> None:
    record = logging.LogRecord("x", logging.WARNING, __file__, 1, "server says %s", (HOSTILE,), None)
    assert VisibleFormatter("%(levelname)s %(message)s").format(record) == f"WARNING server says {SHOWN}"
    # The command line installs it, and nothing else.
    program = (
        "import logging, sys; from nephoscope.cli import app as cli; sys.argv[1:] = ['systems'];"
        "cli.leave = lambda code: None; cli.main(); logging.getLogger('x').warning(chr(27) + ']52')"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr
    assert shown == "WARNING x: \\x1b]52\n"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("![x](https://evil/a.png)", r"!\[x\](https\://evil/a.png)"),
        ("<img src=x> `code` **b** ~s~ a|b", r"\<img src=x> \`code\` \*\*b\*\* \~s\~ a\|b"),
        ("_soft_ but read_only", r"\_soft\_ but read_only"),
        ("&lt;b&gt; R&D & more www.evil.com", r"\&lt;b\&gt; R\&D & more www\.evil.com"),
        ("a\nb\rc\x1b[0m\u202e", r"a b\\rc\\x1b\[0m\\u202e"),
        ("plain: 3.5 ms (p99), -1 + 2 = 1!", "plain: 3.5 ms (p99), -1 + 2 = 1!"),
    ],
)
def test_markdown_means_nothing(text: str, plain: str) -> None:
    lines = markdown([of_texts("t", text, ["a", text], [["1", text]])], [text]).splitlines()
    assert lines[0] == f"**{plain}**"
    assert lines[2] == f"| a | {plain} |"
    assert lines[4] == f"| 1 | {plain} |"
    assert lines[-1] == f"- {plain}"


@pytest.mark.parametrize("mark", ["# a", "- a", "+ a", "> a", "1. a", "2) a", "   # a"])
def test_a_note_of_markdown_begins_no_block(mark: str) -> None:
    last = markdown([], [mark]).removesuffix(" a\n")
    assert last == f"- {mark.split(maxsplit=1)[0][:-1]}\\{mark.split(maxsplit=1)[0][-1]}"


def test_cells_of_csv_are_no_formulas(tmp_path: Path) -> None:
    texts = ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "a=1", "x\x1b]52", None]
    rows = [{"name": text, "value": -1.5} for text in texts]
    write_tables([Table("t", "T", [Column("name", "text"), Column("value")], rows)], tmp_path)
    read = csv.read_csv(
        tmp_path / "t.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)
    ).to_pydict()
    assert read["name"] == [
        "'=cmd|' /C calc'!A0",
        "'+1",
        "'-2",
        "'@SUM(A1)",
        "'\t=1",
        r"\r=1",
        "a=1",
        r"x\x1b]52",
        None,
    ]
    assert read["value"] == [-1.5] * len(texts)
    assert pq.read_table(tmp_path / "t.parquet").column("name").to_pylist() == texts


def test_an_encoding_without_a_letter_is_no_error(tmp_path: Path) -> None:
    environment = {"PYTHONIOENCODING": "ascii"}
    with start("report", "né", cwd=tmp_path, environment=environment) as process:
        ended = finish(process)
    assert (ended.code, ended.err.split(" is ")[0]) == (2, r"nephoscope: n\xe9")
    with start("systems", cwd=tmp_path, environment=environment) as process:
        ended = finish(process)
    assert (ended.code, ended.err) == (0, "")
    assert r"YugabyteDB \u2026" in ended.out
