"""A page store as a service: its settings, and what its replicas have counted."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from nephoscope.errors import InputError
from nephoscope.settings.units import Duration, parse_duration
from nephoscope.tables.columns import whole
from nephoscope.tables.model import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nephoscope import _engine

_STALL = re.compile(r"(?:([0-9]+):)?([^:+]+)\+([^:+]+)")

Bytes = Annotated[int, Field(gt=0)]


class PageStoreSettings(BaseModel):
    """What holds for all replicas of a page store. Times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    append: Duration
    """Service time of an append."""
    read: Duration
    """Service time of a read."""
    per_byte: Duration
    """Service time of each byte that is appended or read."""
    per_record: Duration
    """Service time of each record that is applied to an image."""
    parallel: Annotated[int, Field(ge=1, le=1024)]
    """How many requests a replica serves at once."""
    page_size: Bytes
    consolidate: Annotated[int, Field(ge=0)]
    """The length of a chain of which an image is made in the background; 0 is never."""
    retain: Annotated[int, Field(ge=0)]
    """Of how many of its newest LSNs a segment can be read whatever was consolidated."""
    memory: Bytes
    sync: bool

    def engine(self, replicas: Sequence[Mapping[str, Any]]) -> str:
        """Write them as the engine reads them."""
        given = dict(self)
        for name in ("append", "read", "per_byte", "per_record"):
            given[f"{name.removeprefix('per_')}_s"] = given.pop(name)
        return json.dumps({**given, "replicas": list(replicas)})


def replicas_of(
    count: int, host: str, port: int, stalls: Sequence[str], folder: Path | None
) -> list[dict[str, Any]]:
    """Describe so many replicas on ports that follow each other, from ``port`` on; 0 is any that are free.

    A stall is written ``N:10s+0.5s``: replica N does nothing for half a second, ten seconds after its start. Raises
    ``InputError`` where one cannot be read.
    """
    try:
        shown = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host  # noqa: PLR2004 - IPv6
    except ValueError:
        raise InputError(f"--host {host}: an IP address is needed, such as 127.0.0.1 or ::1") from None
    replicas: list[dict[str, Any]] = [
        {
            "address": f"{shown}:{port + at if port else 0}",
            "stalls": [],
            "file": str(folder / f"replica-{at + 1}.log") if folder else None,
        }
        for at in range(count)
    ]
    for text in stalls:
        number, stall = _stall(text)
        if not 1 <= number <= count:
            raise InputError(f"--stall {text}: there are replicas 1 to {count}")
        replicas[number - 1]["stalls"].append(stall)
    return replicas


def _stall(text: str) -> tuple[int, tuple[float, float]]:
    match = _STALL.fullmatch(text)
    if match is None:
        raise InputError(f"--stall {text}: it is written as 10s+0.5s, or as 2:10s+0.5s for replica 2")
    try:
        return int(match[1] or 1), (parse_duration(match[2]), parse_duration(match[3]))
    except ValueError as error:
        raise InputError(f"--stall {text}: {error}") from None


def table_of(store: _engine.PageStore) -> Table:
    """Show what each replica has counted."""
    counted: list[dict[str, int]] = json.loads(store.statistics())
    rows = [{"replica": at, **one} for at, one in enumerate(counted, 1)]
    columns = (
        whole("replica", "number of the replica", "replica"),
        whole("appends", "records that it has taken", "appends"),
        whole("appended_bytes", "bytes of those records", "bytes appended"),
        whole("reads", "reads that it has answered", "reads"),
        whole("read_bytes", "bytes that were read", "bytes read"),
        whole("waited", "reads that waited for a record", "reads that waited"),
        whole("applied", "records that reads had to apply to images", "records applied"),
        whole("longest_chain", "the most records that one read had to apply", "longest chain"),
        whole("consolidations", "images that were made in the background", "images made"),
        whole("refused", "requests that it has refused", "refused"),
        whole("held", "bytes of images and records in memory", "bytes held"),
    )
    return Table("page_store", "Replicas of the page store", columns, tuple(rows))
