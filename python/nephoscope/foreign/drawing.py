"""The values that a file of SQL draws: words of ``pick`` with numbers, texts and values drawn before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.foreign.base import lua_text, refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d+)?)
    |(?P<text>'(?:[^']|'')*'|"[^"]*")
    |:(?P<value>[A-Za-z_]\w*)
    |row\.(?P<column>[A-Za-z_]\w*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>[-+*/%(),])
    |(?P<end>$)
    )""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Mapping[str, tuple[int, int]] = {
    "key": (1, 2),
    "integer": (2, 2),
    "number": (2, 3),
    "chance": (1, 1),
    "choice": (1, 100),
    "zipf": (2, 2),
    "letters": (2, 2),
    "pattern": (1, 1),
}
"""The words, and how many arguments they take."""

_PLAIN = {
    "scale": "w.scale",
    "session": "tx.session",
    "sessions": "tx.sessions",
    "now": "tx.now",
    "null": "tx.null",
}
_MOST_TOKENS = 200


def draw(
    file: str,
    line: int,
    text: str,
    keys: Mapping[str, tuple[str, str]],
    known: Collection[str],
    *,
    picks: bool = True,
) -> str:
    """Write a value as Lua. ``keys`` has the ranges of keys, ``known`` the values that were drawn before.

    Without ``picks`` only numbers and ``scale`` are allowed. Raises ``InputError`` with file and line.
    """
    reader = _Reader(file, line, text, keys, known, picks=picks)
    lua = reader.sum()
    if reader.kind != "end":
        refuse(file, line, f"{reader.token!r} is one too many in {text}")
    return lua


class _Reader:
    def __init__(
        self,
        file: str,
        line: int,
        text: str,
        keys: Mapping[str, tuple[str, str]],
        known: Collection[str],
        *,
        picks: bool,
    ) -> None:
        self._file, self._line = file, line
        self._keys, self._known, self._picks = keys, known, picks
        self._tokens = self._cut(text)

    def _cut(self, text: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        at = 0
        while not found or found[-1][0] != "end":
            match = _TOKEN.match(text, at)
            if match is None or len(found) > _MOST_TOKENS:
                refuse(self._file, self._line, f"{text[at:].strip()!r} cannot stand in a value")
            kind = str(match.lastgroup)
            found.append((kind, match[kind]))
            at = match.end()
        return found

    @property
    def kind(self) -> str:
        return self._tokens[0][0]

    @property
    def token(self) -> str:
        return self._tokens[0][1]

    def _take(self, *signs: str) -> str | None:
        if self.kind == "sign" and self.token in signs:
            return self._tokens.pop(0)[1]
        return None

    def sum(self) -> str:
        lua = self._product()
        while sign := self._take("+", "-"):
            lua = f"{lua} {sign} {self._product()}"
        return lua

    def _product(self) -> str:
        lua = self._term()
        while sign := self._take("*", "/", "%"):
            lua = f"{lua} {sign} {self._term()}"
        return lua

    def _term(self) -> str:
        if self._take("-"):
            return f"(-{self._term()})"
        if self._take("("):
            lua = self.sum()
            self._close()
            return f"({lua})"
        kind, token = self._tokens[0]
        if kind in ("sign", "end"):
            refuse(self._file, self._line, "a value is missing")
        self._tokens.pop(0)
        if kind == "word":
            return self._word(token)
        if kind == "value" and token not in self._known:
            refuse(self._file, self._line, f":{token} is not drawn above")
        written = {
            "number": token,
            "text": lua_text(token[1:-1].replace("''", "'")),
            "value": f"v_{token}",
            "column": f"row.{token}",
        }
        return written[kind]

    def _close(self) -> None:
        if not self._take(")"):
            refuse(self._file, self._line, "a ) is missing")

    def _word(self, word: str) -> str:
        if word in _PLAIN and (self._picks or word == "scale"):
            return _PLAIN[word]
        allowed = [*_WORDS, *_PLAIN] if self._picks else ["scale"]
        if word not in allowed:
            refuse(self._file, self._line, f"nothing is called {word}; allowed are {', '.join(allowed)}")
        if not self._take("("):
            refuse(self._file, self._line, f"{word} is called with its values: {word}(…)")
        values = self._values(word)
        least, most = _WORDS[word]
        if not least <= len(values) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            refuse(self._file, self._line, f"{word} takes {wanted} values; {len(values)} are given")
        if word == "choice":
            return f"pick.choice({{ {', '.join(values)} }})"
        return f"pick.{word}({', '.join(values)})"

    def _values(self, word: str) -> Sequence[str]:
        kind, token = self._tokens[0]
        if word == "key" and kind in ("word", "text") and self._tokens[1] == ("sign", ")"):
            name = token.strip("'\"")
            if name not in self._keys:
                known = ", ".join(self._keys) or "none"
                refuse(
                    self._file,
                    self._line,
                    f"no keys are called {name}; there are {known}: -- keys: {name} = 1 to 1000",
                )
            del self._tokens[:2]
            return self._keys[name]
        if self._take(")"):
            return []
        values = [self.sum()]
        while self._take(","):
            values.append(self.sum())
        self._close()
        return values
