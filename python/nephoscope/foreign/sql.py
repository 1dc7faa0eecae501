"""SQL alone: a file whose comments name its transactions, their weights and the values that are drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nephoscope.errors import InputError
from nephoscope.foreign.base import (
    Asked,
    Meant,
    NamedFile,
    Tool,
    lua_text,
    mix_lines,
    positive,
    read_words,
    refuse,
    text_of,
    whole,
)
from nephoscope.foreign.drawing import draw
from nephoscope.foreign.scanning import Sql, commands
from nephoscope.foreign.statements import border_of, reads_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_HEADING = re.compile(r"\s*--\s*(?P<word>name|check|schema|keys|about):\s*(?P<rest>.*?)\s*")
_DRAW = re.compile(r"\s*--\s*:(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*?)\s*", re.ASCII)
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<rest>.*)", re.ASCII)
_KEYS = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<low>.+?)\s+to\s+(?P<high>.+)", re.ASCII)
_SECTIONS = ("create", "keys", "drop")


@dataclass
class Block:
    """What stands below a heading."""

    word: str
    line: int
    name: str
    weight: int = 1
    reads: bool = False
    """Whether the heading says that it only reads."""
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text, on the lines that it has in the file."""
        return "\n" * self.line + "\n".join(self.lines)


@dataclass(frozen=True)
class Drawn:
    """A value that is drawn."""

    line: int
    name: str
    value: str


class SqlFile:
    """A file that has been cut at its headings."""

    def __init__(self, file: str, text: str) -> None:
        """Cut it. Raises ``InputError`` with file and line."""
        self.file = file
        self.about = ""
        self.keys: dict[str, tuple[str, str]] = {}
        self.blocks: list[Block] = []
        for number, line in enumerate(text.splitlines(), 1):
            heading = _HEADING.fullmatch(line)
            if heading is not None:
                self._take(heading["word"], heading["rest"], number)
            elif self.blocks:
                self.blocks[-1].lines.append(line)
            elif line.strip() and not line.lstrip().startswith("--"):
                refuse(
                    file,
                    number,
                    "SQL before the first line -- name: …; scripts of pgbench are run by --pgbench",
                )
        if not self.of("name"):
            refuse(
                file, 1, "no line -- name: … begins a transaction; scripts of pgbench are run by --pgbench"
            )

    def of(self, word: str) -> list[Block]:
        """Give the blocks with a heading of this kind."""
        return [block for block in self.blocks if block.word == word]

    def _take(self, word: str, rest: str, number: int) -> None:
        if word == "about":
            self.about = rest
        elif word == "keys":
            found = _KEYS.fullmatch(rest)
            if found is None:
                refuse(
                    self.file,
                    number,
                    "expected -- keys: NAME = LOW to HIGH, such as orders = 1 to 1000 * scale",
                )
            low, high = (
                draw(self.file, number, found[end], {}, set(), picks=False) for end in ("low", "high")
            )
            # Below a scale of 1 there is a first one all the same.
            self.keys[found["name"]] = (low, f"math.max({low}, math.floor({high}))")
        else:
            block = self._block(word, rest, number)
            if any(block.name == other.name and block.word == other.word for other in self.blocks):
                refuse(self.file, number, f"a second {block.word} is called {block.name}")
            self.blocks.append(block)

    def _block(self, word: str, rest: str, number: int) -> Block:
        found = _NAME.fullmatch(rest)
        if found is None:
            refuse(self.file, number, "a name is one word of letters, digits and underscores")
        block = Block(word, number, found["name"])
        more = found["rest"]
        if word == "name":
            settings = re.fullmatch(r"(?:\s+weight:\s*(?P<weight>\d{1,9}))?(?P<reads>\s+read only)?", more)
            if settings is None:
                refuse(
                    self.file,
                    number,
                    f"{more.strip()!r} is not known; allowed are weight: NUMBER and read only",
                )
            block.weight = int(settings["weight"] or 1)
            block.reads = bool(settings["reads"])
        elif more.strip():
            refuse(self.file, number, f"{more.strip()!r} is one too many")
        if word == "schema" and block.name not in _SECTIONS:
            refuse(
                self.file, number, f"there is no section {block.name}; sections are {', '.join(_SECTIONS)}"
            )
        return block


class SqlTool(Tool):
    """A file of SQL."""

    name: ClassVar[str] = "sql"
    ending: ClassVar[str] = ".sql"

    def asked(self, files: Sequence[str], words: Sequence[str]) -> Asked:
        """Read the words of one load: -c, -T and -R, as pgbench has them."""
        phase: dict[str, Any] = {}
        known = {
            "-c": lambda value: phase.update(concurrency=whole("sql", "-c", value)),
            "-T": lambda value: phase.update(duration=positive("sql", "-T", value)),
            "-R": lambda value: phase.update(rate=positive("sql", "-R", value), arrivals="poisson"),
        }
        rest = read_words("sql", words, known, {}, {})
        if rest:
            raise InputError(
                f"sql: {rest[0]!r}: the system is named by --url, and a study stands before --sql"
            )
        sessions = {"sessions": phase.pop("concurrency")} if {"rate", "concurrency"} <= phase.keys() else {}
        return Asked(parts=[NamedFile(file) for file in files], phase=phase, load=sessions)

    def meant(self, parts: Sequence[NamedFile]) -> Meant:
        """Say that the tables are there already, unless the file makes them."""
        makes = any(_read(part).of("schema") for part in parts)
        return Meant({} if makes else {"external": True})

    def made(self, parts: Sequence[NamedFile]) -> Mapping[str, str]:
        """Make a workload of one file."""
        if len(parts) > 1 or parts[0].weight != 1:
            raise InputError("workload.name: a workload is one file of SQL; its headings have the weights")
        return {"workload.lua": _written(_read(parts[0]))}


def _read(part: NamedFile) -> SqlFile:
    return SqlFile(part.name, text_of(Path(part.name)))


def _written(file: SqlFile) -> str:
    lines = [
        f"local w = workload {lua_text(_workload_name(file.file))}",
        f"w:describe {lua_text(file.about or 'SQL')}",
    ]
    lines += [
        f"w:schema({lua_text(block.name)}, {_scaled(block.text.strip())})" for block in file.of("schema")
    ]
    weights, reading = {}, set()
    for block in file.of("name"):
        body, statements, reads = _transaction(file, block)
        lines += [f"w:statement({lua_text(name)}, {lua_text(sql)})" for name, sql in statements.items()]
        settings = f"{{ read_only = {'true' if reads else 'false'} }}"
        lines += [f"w:transaction({lua_text(block.name)}, {settings}, function(tx, pick)", *body, "end)"]
        weights[block.name] = block.weight
        reading |= {block.name} if reads else set()
    if not any(weights.values()):
        refuse(file.file, file.of("name")[0].line, "no transaction has a weight above 0")
    lines += mix_lines(weights, reading)
    for block in file.of("check"):
        sql = _one_statement(file, block)
        lines.append(f"w:statement({lua_text('check_' + block.name)}, {lua_text(sql.text.strip())})")
        lines.append(
            f"w:invariant({lua_text('check_' + block.name)}, {lua_text(block.name.replace('_', ' '))})"
        )
    return "\n".join([*lines, ""])


def _scaled(sql: str) -> str:
    """Write SQL as Lua, with the scale factor in the place of :scale."""
    return " .. w.scale .. ".join(map(lua_text, re.split(r"(?<!:):scale\b", sql)))


def _workload_name(file: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", Path(file).stem)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def _one_statement(file: SqlFile, block: Block) -> Sql:
    found = list(_statements(file.file, block.text))
    if len(found) != 1:
        refuse(
            file.file,
            block.line,
            f"a check is one statement for the rows that are wrong, not {len(found)}",
        )
    return found[0]


def _statements(file: str, text: str) -> Iterator[Sql]:
    for command in commands(file, text):
        if command.meta:
            refuse(
                file,
                command.line,
                f"\\{command.meta}: such commands are pgbench's: nephoscope run --pgbench FILE",
            )
        if len(command.statements) > 1:
            refuse(file, command.line, "\\; is pgbench's: nephoscope run --pgbench FILE")
        yield from command.statements


def _pieces(file: SqlFile, block: Block) -> Iterator[Sql | Drawn]:
    """Give statements and draws in their order."""
    gathered: list[str] = []
    for number, line in enumerate(block.lines, block.line + 1):
        found = _DRAW.fullmatch(line)
        if found is None:
            gathered.append(line)
            continue
        text = "\n".join(gathered)
        if re.sub(r"--[^\n]*|\s+", "", text) and not re.search(r";\s*(?:--[^\n]*\s*)*\Z", text):
            refuse(
                file.file,
                number,
                f":{found['name']} is drawn within a statement; it is drawn before the statement",
            )
        yield from _statements(file.file, "\n" * (number - len(gathered) - 1) + text)
        gathered = []
        yield Drawn(number, found["name"], found["value"])
    start = block.line + len(block.lines) - len(gathered)
    yield from _statements(file.file, "\n" * start + "\n".join(gathered))


def _transaction(file: SqlFile, block: Block) -> tuple[list[str], dict[str, str], bool]:
    """Write the body of a transaction's function; its statements; whether it only reads."""
    pieces = list(_pieces(file, block))
    sqls = [piece for piece in pieces if isinstance(piece, Sql)]
    if not sqls:
        refuse(file.file, block.line, f"the transaction {block.name} has no SQL")
    # Several statements are one transaction, unless BEGIN and COMMIT say where one is.
    around = len(sqls) > 1 and not any(border_of(sql.text) for sql in sqls)
    body = ["  tx:begin()"] if around else []
    statements: dict[str, str] = {}
    known: set[str] = set()
    for at, piece in enumerate(pieces):
        if isinstance(piece, Drawn):
            value = draw(file.file, piece.line, piece.value, file.keys, known)
            if "row." in value and not any(isinstance(before, Sql) for before in pieces[:at]):
                refuse(file.file, piece.line, "row: no statement stands before it")
            body.append(f"  {'' if piece.name in known else 'local '}v_{piece.name} = {value}")
            known.add(piece.name)
            continue
        border = border_of(piece.text)
        if border is not None:
            if border.modes:
                refuse(file.file, piece.line, "BEGIN stands alone; load.isolation sets the isolation level")
            body.append(f"  tx:{border.word}()")
            continue
        name = f"{block.name}_{piece.line}"
        statements[name] = piece.text.strip()
        call = ", ".join([lua_text(name), *(_parameter(file, piece, one, known) for one in piece.variables)])
        body += _call(call, pieces[at + 1 :], inside=around or _open(pieces[:at]))
    return [*body, *(["  tx:commit()"] if around else [])], statements, block.reads or reads_only(sqls)


def _open(before: Sequence[Sql | Drawn]) -> bool:
    """Tell whether BEGIN has begun a transaction that has not ended."""
    borders = [border for piece in before if isinstance(piece, Sql) and (border := border_of(piece.text))]
    return bool(borders) and borders[-1].word == "begin"


def _call(call: str, rest: Sequence[Sql | Drawn], *, inside: bool) -> list[str]:
    """Run a statement. Where a draw behind it wants its row, a transaction without one is given up."""
    wanted = False
    for piece in rest:
        if isinstance(piece, Sql):
            break
        wanted = wanted or "row." in piece.value
    if not wanted:
        return [f"  tx:exec({call})"]
    give_up = "tx:rollback()" if inside else "tx:abort()"
    return [f"  local row = tx:one({call})", f"  if not row then return {give_up} end"]


def _parameter(file: SqlFile, sql: Sql, name: str, known: set[str]) -> str:
    if name not in known:
        refuse(file.file, sql.line, f":{name} is not drawn above; write -- :{name} = key(1, 1000), say")
    return f"v_{name}"
