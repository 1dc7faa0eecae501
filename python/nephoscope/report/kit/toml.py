"""A light colouring of TOML: comments, tables, keys, strings, values; everything in it is escaped."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# In this order: a comment may hold quotes, and a string may hold a hash sign.
_TOKEN = re.compile(
    r"""
    (?P<string>\"\"\".*?\"\"\" | '''.*?''' | "(?:\\.|[^"\\\n])*" | '[^'\n]*')
  | (?P<comment>\#[^\n]*)
  | (?P<table>^[ \t]*\[\[?[^\]\n]*\]\]?(?=[ \t]*(?:\#|$)))
  | (?P<key>[A-Za-z0-9_.-]+(?=[ \t]*=))
  | (?P<value>\b(?:true|false|inf|nan)\b | [+-]?\d[\w.:+-]*)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


def highlight(text: str) -> Markup:
    """Return the text as HTML, each token in a ``span`` whose class is its kind."""
    parts: list[str] = []
    position = 0
    for match in _TOKEN.finditer(text):
        parts.append(escape(text[position : match.start()]))
        parts.append(f'<span class="t-{match.lastgroup}">{escape(match.group())}</span>')
        position = match.end()
    parts.append(escape(text[position:]))
    return Markup("".join(parts))  # noqa: S704 - each part is escaped, or is in these lines
