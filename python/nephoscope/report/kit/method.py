"""The resolved method of an evaluator: the settings that it was run with, every default written out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nephoscope.report.kit.parts import Fact, Method
from nephoscope.tables.numbers import count, plain

if TYPE_CHECKING:
    from collections.abc import Collection

    from nephoscope.report.kit.run import Run


def of(run: Run, evaluator: str, leave_out: Collection[str] = ()) -> tuple[Method, ...]:
    """Return the entries of ``[[measure]]`` of an evaluator, without some keys that mean nothing in them."""
    return tuple(
        Method(
            evaluator=evaluator,
            settings=tuple(
                Fact(label=str(key).replace("_", " "), value=redacted(text_of(value)))
                for key, value in entry.items()
                if key != "evaluator" and key not in leave_out
            ),
        )
        for entry in run.measures
        if entry.get("evaluator") == evaluator
    )


# The store redacts URLs; the page does not rely on it, because a report is handed on.
_SECRET = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s/]*@", re.IGNORECASE)


def redacted(text: str) -> str:
    """Return the text without the password of any URL in it."""
    return _SECRET.sub(r"\g<head>:•••@", text)


def text_of(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return a setting or a fact in words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text_of(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(text_of(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return plain(value)
    return str(value)
