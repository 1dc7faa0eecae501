"""Environment variables in the URLs of a study: they keep secrets out of studies and of stored runs."""

from __future__ import annotations

import os
import re

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.masking import MASK, know, know_url

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def redacted_url(url: str) -> str:
    """Hide a URL's password, unless it is an environment variable: a study that names one can be run again."""
    shown = _engine.redact(url)
    before, _, after = shown.partition(MASK)
    if shown.count(MASK) != 1:
        return shown
    hidden = url[len(before) : len(url) - len(after)]
    return url if _VARIABLE.fullmatch(hidden) else shown


def substitute(text: str, where: str) -> str:
    """Put environment variables in the places of ``${NAME}``: how secrets stay out of studies.

    Raises ``InputError`` for a variable that is not set.
    """

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name not in os.environ:
            raise InputError(f"{where}: the environment variable {name} is not set")
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def with_secrets(text: str, where: str) -> str:
    """Put environment variables into a text that is no URL; from now on their values are secrets.

    Raises ``InputError`` for a variable that is not set.
    """
    for found in _VARIABLE.finditer(text):
        know(os.environ.get(found[1], ""))
    return substitute(text, where)


def endpoint(url: str, where: str) -> str:
    """Return a URL with its environment variables put in, when a driver takes it.

    Raises ``InputError``; ``where`` is the key that the URL stands at.
    """
    whole = substitute(url, where)
    know_url(whole)
    if not _SCHEME.match(whole):  # a connection string of another form may hold a password: it is not shown
        known = ", ".join(f"{scheme}://" for scheme, _ in _engine.schemes())
        raise InputError(f"{where}: this is no URL; it begins with one of {known}")
    try:
        _engine.check_url(whole)
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix('url: ')}") from None
    return whole
