"""URLs of a tenant's own part of a server, made of the system's URL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Callable

_URL = re.compile(r"(?P<server>[a-z]+://[^/?#]*)(?P<path>/[^?#]*)?(\?(?P<query>[^#]*))?")


@dataclass(frozen=True)
class Share:
    """How tenants' data is kept apart within a server."""

    there: str
    """Lists those of the ``{names}``, literals, that there are."""
    make: str
    """Makes one of the ``{name}``."""
    url: Callable[[str, str], str]
    """Gives the URL of the part of a name on the server of a URL. Raises ``ValueError``: the URL has no such form."""


def in_path(parameter: str) -> Callable[[str, str], str]:
    """Give what puts a database into a URL's path; the ``parameter`` may name it, too."""

    def url(url: str, name: str) -> str:
        server, _, query = _parts(url)
        return _joined(server, f"/{name}", [part for part in query if _key(part) != parameter])

    return url


def in_search_path(url: str, name: str) -> str:
    """Have the sessions of a URL look for tables in a schema of PostgreSQL's."""
    server, path, query = _parts(url)
    given = [unquote(part.partition("=")[2]) for part in query if _key(part) == "options"]
    before = given[-1] if given else os.environ.get("PGOPTIONS", "")
    query = [part for part in query if _key(part) != "options"]
    # The last of several options for one setting holds.
    query.append(f"options={quote(f'{before} -csearch_path={name}'.strip(), safe='')}")
    return _joined(server, path, query)


def _parts(url: str) -> tuple[str, str, list[str]]:
    """Take a URL apart, as it stands: what is decoded and encoded again may come out different ("+" is a plus here)."""
    found = _URL.match(url)
    if found is None:
        raise ValueError("the system's URL cannot be taken apart")
    return found["server"], found["path"] or "", [part for part in (found["query"] or "").split("&") if part]


def _joined(server: str, path: str, query: list[str]) -> str:
    text = "&".join(query)
    return f"{server}{path}" + (f"?{text}" if text else "")


def _key(part: str) -> str:
    return unquote(part.partition("=")[0])
