"""Foreign text on its way out: what could command a terminal, or hide in a line, is shown as an escape.

Names, error messages and paths come from servers, workload files, hooks and run directories. Whatever shows them passes
them through ``visible``: the console that every command prints on (``live.VisibleConsole``, where text is never markup
either), the log, JSON lines, tables and reports.
"""

from __future__ import annotations

import json
import logging
import unicodedata

from nephoscope.masking import masked

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls (C0, DEL, C1), format characters (bidirectional, zero-width), lone surrogates, and
separators of lines and paragraphs."""


def visible(text: str) -> str:
    r"""Return ``text`` with every control and format character as an escape: ``\x1b``, ``\r``, ``\u202e``.

    Line feeds and tabs are kept: messages of several lines are common, and neither moves the cursor back.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else "".join(map(_escape, line)) for line in text.split("\n"))


def _escape(character: str) -> str:
    if character == "\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def json_text(value: object) -> str:
    """Write JSON in printable ASCII on one line, for standard output."""
    # DEL is the one control character that JSON leaves as it is.
    return json.dumps(value).replace("\x7f", "\\u007f")


class VisibleFormatter(logging.Formatter):
    """Formats records of the log as visible text, without the secrets that are known."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return visible(masked(super().format(record)))
