"""The secrets that this process knows, and how they are kept out of every text that is shown or stored.

A secret is known from a URL that was used (:func:`know_url`), from a study's ``${NAME}`` that stands for one
(:func:`know`), from the environment, or from the password file. Servers and hooks may repeat any of them.
"""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from nephoscope import _engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "***"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+?(?=[:;,.'\")\]]*(?:\s|$))")
"""A URL in a sentence, without the punctuation after it."""
_SECRET_NAME = re.compile(r"PASS|PWD|SECRET|TOKEN|API_?KEY|CREDENTIAL", re.IGNORECASE)
_NO_SECRET_NAME = re.compile(r"(OLD)?PWD|.*(FILE|PATH|DIR|ASKPASS)", re.IGNORECASE)
"""Working directories, and the places of files and programs."""

_GUESSED_LENGTH = 6
"""A shorter value of a variable is no secret by its name alone: it may be a number or a switch."""
_SHORT = 4
"""A secret of fewer characters is masked as a word of its own only: inside of words it is there by chance."""
_FILE_BYTES = 1 << 20
_BEFORE_PASSWORD = 4
"""So many fields stand before the password in a line of the password file: host, port, database, user."""
_FIELD = re.compile(r"((?:\\.|[^:])*)(?::|$)")
"""A field of such a line, in which a backslash escapes."""

_known: set[str] = set()


def know(secret: str) -> None:
    """Keep a secret out of every text from now on."""
    if secret.strip():
        _known.add(secret)


def know_url(url: str) -> None:
    """Keep the passwords of a URL out of every text from now on, and those of the password file that it names."""
    _known.update(_passwords_of(url))
    _known.update(_named_file(url))


def masked(text: str) -> str:
    """Return a text of any origin with ``***`` in the place of every secret that is known.

    Passwords of URLs in the text are masked too, known or not.
    """
    shown = _URL.sub(lambda found: _engine.redact(found[0]), text)
    pattern = _pattern(frozenset(_known.union(_of_the_environment())))
    return pattern.sub(MASK, shown) if pattern else shown


@cache
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Make a pattern that finds the secrets in any of their forms, the longest first."""
    forms = {form for secret in secrets for form in _forms(secret)}
    found = [
        rf"(?<!\w){re.escape(form)}(?!\w)" if len(form) < _SHORT else re.escape(form)
        for form in sorted(forms, key=len, reverse=True)
    ]
    return re.compile("|".join(found)) if found else None


def _forms(secret: str) -> Iterable[str]:
    """Give a secret as it is meant, and as it stands in URLs, SQL, the password file, and on one line."""
    yield secret
    yield quote(secret, safe="")
    yield secret.replace("'", "''")
    yield secret.replace("\\", "\\\\").replace(":", "\\:")
    yield from (line for line in secret.splitlines() if len(line) >= _GUESSED_LENGTH)


def _passwords_of(url: str) -> Iterator[str]:
    """Find the passwords of a URL, as they stand there and as they are meant."""
    pieces = _engine.redact(url).split(MASK)
    place = len(pieces[0]) if url.startswith(pieces[0]) else len(url)
    for number, after in enumerate(pieces[1:], start=2):
        end = len(url) - len(after) if number == len(pieces) else url.find(after, place + 1)
        if not url.startswith(after, end) or end <= place:
            return
        hidden = url[place:end]
        yield from {hidden, unquote(hidden)} - {""}
        place = end + len(after)


def _named_file(url: str) -> Iterable[str]:
    """Read the password file that a URL names."""
    try:
        named = parse_qs(urlsplit(url).query).get("passfile", [])
    except ValueError:
        return ()
    return [secret for name in named for secret in _of_file(Path(name))]


def _of_the_environment() -> Iterator[str]:
    """Give the secrets of the variables as they are now, and of the password file."""
    if password := os.environ.get("PGPASSWORD"):
        yield password
    for name, value in os.environ.items():
        if (
            len(value) >= _GUESSED_LENGTH
            and _SECRET_NAME.search(name)
            and not _NO_SECRET_NAME.fullmatch(name)
        ):
            yield value
    home = os.environ.get("HOME")
    given = os.environ.get("PGPASSFILE") or (f"{home}/.pgpass" if home else None)
    if given:
        yield from _of_file(Path(given))


def _of_file(path: Path) -> tuple[str, ...]:
    """Give the passwords of a password file; none where it cannot be read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
            return ()
        return _read_file(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return ()


@cache
def _read_file(path: Path, changed_ns: int, size: int) -> tuple[str, ...]:
    """Read a password file as it was at a time: host:port:database:user:password, colons escaped."""
    del changed_ns, size
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = _FIELD.findall(line)
        if len(fields) > _BEFORE_PASSWORD and fields[_BEFORE_PASSWORD] and not line.startswith("#"):
            found.append(re.sub(r"\\(.)", r"\1", fields[_BEFORE_PASSWORD]))
    return tuple(found)
