r"""pgbench's expressions, as Lua: what ``\set``, ``\if`` and ``\elif`` are given.

Whole numbers are integers of 64 bits, so that their arithmetic overflows where pgbench's does; each operator and
function is one of ``runtime.lua``, which has pgbench's rules for types and NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<integer>\d+)
    |:(?P<variable>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign><<|>>|<=|>=|<>|!=|[-+*/%=<>&|\#~(),])
    |(?P<end>$)
    )""",
    re.VERBOSE,
)
_LARGEST = 2**63
_DEPTH = 40
"""How deep parentheses may be nested."""
_LUA_DEPTH = 180
"""How deep calls may be nested in Lua: its compiler takes 200."""


class Count(NamedTuple):
    """How many arguments a function takes."""

    least: int
    most: int


FUNCTIONS: Mapping[str, Count] = {
    "abs": Count(1, 1), "debug": Count(1, 1), "double": Count(1, 1), "exp": Count(1, 1),
    "greatest": Count(1, 100), "hash": Count(1, 2), "hash_fnv1a": Count(1, 2), "hash_murmur2": Count(1, 2),
    "int": Count(1, 1), "least": Count(1, 100), "ln": Count(1, 1), "mod": Count(2, 2), "permute": Count(2, 3),
    "pi": Count(0, 0), "pow": Count(2, 2), "power": Count(2, 2), "random": Count(2, 2),
    "random_exponential": Count(3, 3), "random_gaussian": Count(3, 3), "random_zipfian": Count(3, 3),
    "sqrt": Count(1, 1),
}  # fmt: skip
"""The functions of pgbench's documentation."""

_LUA_NAMES = {"hash": "hash_murmur2", "power": "pow"}
_SEEDED = {"hash": 2, "hash_fnv1a": 2, "hash_murmur2": 2, "permute": 3}
"""Functions whose last argument is ``:default_seed`` where it is left out, and how many they then have."""

_COMPARISONS = {"<": "lt", "<=": "le", "=": "eq", "<>": "ne", "!=": "ne", ">": "gt", ">=": "ge"}
_LEFT: tuple[Mapping[str, str], ...] = (
    {"|": "bitor", "#": "bitxor", "&": "bitand", "<<": "shift_left", ">>": "shift_right"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide", "%": "mod"},
)
"""Operators that bind from the left, those that bind less first."""


class ExpressionError(Exception):
    """What is wrong with an expression."""


@dataclass(frozen=True)
class Token:
    """A piece of an expression."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these key words, in any case."""
        return self.kind == "word" and self.text.upper() in words

    def __str__(self) -> str:
        """Write it for a message."""
        return "the end" if self.kind == "end" else f'"{self.text}"'


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f'"{text[at:].split(maxsplit=1)[0]}" cannot stand here')
        kind = str(match.lastgroup)
        found.append(Token(kind, match[kind]))
        at = match.end()
    return found


def expression(text: str, variable: Callable[[str], str]) -> str:
    """Write an expression as Lua. ``variable`` says what the value of a variable is there.

    Raises ``ExpressionError``.
    """
    parser = _Parser(_tokens(text), variable)
    lua = parser.whole()
    if parser.token.kind != "end":
        raise ExpressionError(f"{parser.token} is one too many")
    if max(accumulate((letter == "(") - (letter == ")") for letter in lua), default=0) > _LUA_DEPTH:
        raise ExpressionError("it is too long for one \\set; write it as several")
    return lua


class _Parser:
    def __init__(self, tokens: list[Token], variable: Callable[[str], str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._variable = variable
        self._depth = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self.token
        self._at += 1
        return token

    def _take(self, *signs: str) -> str | None:
        if self.token.kind == "sign" and self.token.text in signs:
            return self._next().text
        return None

    def _take_word(self, *words: str) -> str | None:
        return self._next().text.upper() if self.token.is_word(*words) else None

    def _expect(self, wanted: str) -> None:
        if not (self._take(wanted) or self._take_word(wanted)):
            raise ExpressionError(f'expected "{wanted}" before {self.token}')

    def whole(self) -> str:
        """Read as much as is one expression."""
        return self._nested(self._or)

    def _nested(self, read: Callable[[], str]) -> str:
        self._depth += 1
        if self._depth > _DEPTH:
            raise ExpressionError(f"it is nested more than {_DEPTH} deep")
        lua = read()
        self._depth -= 1
        return lua

    def _or(self) -> str:
        lua = self._and()
        while self._take_word("OR"):
            lua = f"P.either({lua}, function() return {self._and()} end)"
        return lua

    def _and(self) -> str:
        lua = self._not()
        while self._take_word("AND"):
            lua = f"P.both({lua}, function() return {self._not()} end)"
        return lua

    def _not(self) -> str:
        signs = 0
        while self._take_word("NOT"):
            signs += 1
        lua = self._is()
        # Each checks its type, so two of them are not none.
        return "P.negation(" * signs + lua + ")" * signs

    def _is(self) -> str:
        lua = self._comparison()
        if self._take_word("ISNULL"):
            return f"P.is({lua}, P.NULL)"
        if self._take_word("NOTNULL"):
            return f"P.negation(P.is({lua}, P.NULL))"
        if not self._take_word("IS"):
            return lua
        signs = self._take_word("NOT")
        word = self._take_word("NULL", "TRUE", "FALSE")
        if word is None:
            raise ExpressionError(f"expected NULL, TRUE or FALSE before {self.token}")
        lua = f"P.is({lua}, {_CONSTANTS[word]})"
        return f"P.negation({lua})" if signs else lua

    def _comparison(self) -> str:
        lua = self._left(0)
        if sign := self._take(*_COMPARISONS):
            lua = f"P.{_COMPARISONS[sign]}({lua}, {self._left(0)})"
        return lua

    def _left(self, level: int) -> str:
        if level == len(_LEFT):
            return self._signed()
        lua = self._left(level + 1)
        while sign := self._take(*_LEFT[level]):
            lua = f"P.{_LEFT[level][sign]}({lua}, {self._left(level + 1)})"
        return lua

    def _signed(self) -> str:
        if self._take("+"):
            return self._nested(self._signed)
        # It binds less than a sum, as do the other operators on bits.
        if self._take("~"):
            return f"P.bitxor({self._nested(lambda: self._left(1))}, -1LL)"
        if not self._take("-"):
            return self._term()
        if self.token.kind == "integer" and int(self.token.text) == _LARGEST:
            self._next()
            return "P.SMALLEST"
        return f"P.subtract(0LL, {self._nested(self._signed)})"

    def _term(self) -> str:
        token = self._next()
        match token.kind:
            case "integer":
                if int(token.text) >= _LARGEST:
                    raise ExpressionError(f"{token.text} is beyond the integers of 64 bits")
                return f"{int(token.text)}LL"
            case "double":
                return repr(float(token.text)) if float(token.text) != float("inf") else "math.huge"
            case "variable":
                return self._variable(token.text)
            case "word":
                return self._word(token)
            case _ if token.text == "(":
                lua = self.whole()
                self._expect(")")
                return lua
            case _:
                raise ExpressionError(f"a value is missing before {token}")

    def _word(self, token: Token) -> str:
        if token.text.upper() in _CONSTANTS:
            return _CONSTANTS[token.text.upper()]
        if token.is_word("CASE"):
            return self._case()
        name = token.text.lower()
        if name not in FUNCTIONS:
            raise ExpressionError(f"there is no function {token.text}; functions are {', '.join(FUNCTIONS)}")
        self._expect("(")
        values = [] if self._take(")") else self._values()
        least, most = FUNCTIONS[name]
        if not least <= len(values) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise ExpressionError(f"{name} takes {wanted} values; {len(values)} are given")
        if len(values) < _SEEDED.get(name, 0):
            values.append(self._variable("default_seed"))
        if name.startswith("random"):
            values.insert(0, "pick")
        return f"P.{_LUA_NAMES.get(name, name)}({', '.join(values)})"

    def _values(self) -> list[str]:
        values = [self.whole()]
        while self._take(","):
            values.append(self.whole())
        self._expect(")")
        return values

    def _case(self) -> str:
        branches = []
        while self._take_word("WHEN"):
            condition = self.whole()
            self._expect("THEN")
            branches.append(f"if P.truth({condition}) then return {self.whole()} end")
        if not branches:
            raise ExpressionError(f'expected "WHEN" before {self.token}')
        other = self.whole() if self._take_word("ELSE") else "P.NULL"
        self._expect("END")
        return f"(function() {' '.join(branches)} return {other} end)()"


_CONSTANTS = {"NULL": "P.NULL", "TRUE": "true", "FALSE": "false"}
