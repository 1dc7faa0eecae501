"""Cuts a script of pgbench into its commands: SQL up to a semicolon, and what begins with a backslash."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from nephoscope.foreign.base import refuse

_TOKEN = re.compile(
    r"""
    (?P<quoted>(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
      | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$)
    | (?P<comment>--[^\n]*)
    | (?P<opened>/\*)
    | (?P<joint>\\;)
    | (?P<meta>\\(?P<command>[A-Za-z]+)(?P<rest>(?:\\\r?\n|[^\n])*))
    | (?P<variable>(?<!:):(?P<name>[^\W\d]\w*))
    | (?P<cast>::)
    | (?P<sign>[;()])
    | (?P<word>[\w$]+)
    | (?P<broken>['"\\])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE_IN_TEXT = re.compile(r"(?<!:):([A-Za-z_]\w*)", re.ASCII)


@dataclass
class Sql:
    """A statement, and where it begins."""

    line: int
    text: str = ""
    variables: list[str] = field(default_factory=list)
    """The names of its parameters, in the order in which they first appear."""
    quoted: list[str] = field(default_factory=list)
    """Names behind a colon in quotation marks, where there is no parameter."""
    glued: bool = False
    """Whether a parameter is part of a word, as in ``part_:n``."""

    @property
    def words(self) -> list[str]:
        """Its words, in capitals."""
        return re.findall(r"\w+", self.text.upper())


@dataclass(frozen=True)
class Command:
    r"""A command: statements that ``\;`` joins, or a meta command."""

    line: int
    statements: tuple[Sql, ...] = ()
    meta: str = ""
    """The word behind the backslash, in small letters; empty for SQL."""
    rest: str = ""

    @property
    def kind(self) -> Literal["sql", "meta"]:
        """What it is."""
        return "meta" if self.meta else "sql"


def commands(file: str, text: str) -> list[Command]:
    """Cut a script. Raises ``InputError`` with file and line."""
    scanner = _Scanner(file, text)
    at = 0
    while at < len(text):
        at += scanner.take(at)
    scanner.end_of_sql()
    scanner.end_of_command()
    return scanner.commands


class _Scanner:
    """What is found of a script up to a place in it."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._line = 1
        self._depth = 0
        self._sql: Sql | None = None
        self._joined: list[Sql] = []
        self.commands: list[Command] = []

    def take(self, at: int) -> int:
        """Take what stands at a place; returns its length."""
        found = _TOKEN.match(self._text, at)
        if found is None:
            return len(self._text) - at
        kind = next(kind for kind in _KINDS if found[kind] is not None)
        taken = self._comment(at) if kind == "opened" else found[0]
        match kind:
            case "broken":
                refuse(self._file, self._line, _broken(taken))
            case "joint":
                self.end_of_sql()
            case "sign" if taken == ";" and not self._depth:
                self.end_of_command()
            case "meta":
                self.end_of_command()
                rest = re.sub(r"\\\r?\n", " ", found["rest"]).strip()
                self.commands.append(Command(self._line, meta=found["command"].lower(), rest=rest))
            case _:
                self._add(kind, taken)
        self._line += taken.count("\n")
        return len(taken)

    def end_of_sql(self) -> None:
        """End a statement, if one has begun."""
        if self._sql is not None:
            self._joined.append(self._sql)
        self._sql, self._depth = None, 0

    def end_of_command(self) -> None:
        """End a command of SQL, if one has begun."""
        self.end_of_sql()
        if self._joined:
            self.commands.append(Command(self._joined[0].line, tuple(self._joined)))
        self._joined = []

    def _add(self, kind: str, taken: str) -> None:
        nothing = taken.isspace() or kind in ("comment", "opened")
        if self._sql is None:
            if nothing:
                return
            self._sql = Sql(self._line)
        sql = self._sql
        sql.glued = sql.glued or (kind == "variable" and bool(re.search(r"\w\Z", sql.text)))
        sql.text += " " if kind == "comment" else taken
        self._depth += {"(": 1, ")": -1}.get(taken, 0)
        if kind == "variable" and taken[1:] not in sql.variables:
            sql.variables.append(taken[1:])
        elif kind == "quoted":
            sql.quoted += _VARIABLE_IN_TEXT.findall(taken)

    def _comment(self, at: int) -> str:
        """Find the end of a comment, which may hold others."""
        depth = 0
        for found in re.compile(r"/\*|\*/").finditer(self._text, at):
            depth += 1 if found[0] == "/*" else -1
            if depth == 0:
                return self._text[at : found.end()]
        return refuse(self._file, self._line, "the comment that begins with /* does not end")


_KINDS = (
    "quoted",
    "comment",
    "opened",
    "joint",
    "meta",
    "variable",
    "cast",
    "sign",
    "word",
    "broken",
    "other",
)
"""The kinds of tokens; the pattern has groups within groups."""


def _broken(sign: str) -> str:
    if sign == "\\":
        return "a backslash begins a meta command, such as \\set"
    return f"the quotation that begins with {sign} does not end"
