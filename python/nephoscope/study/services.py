"""Services that speak a known protocol: what their manuals say of a client, from the files in ``services/``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.files import packaged, parse_toml
from nephoscope.settings.base import Settings
from nephoscope.settings.validation import one_of, validated

if TYPE_CHECKING:
    from collections.abc import Mapping

Text = Annotated[str, Field(min_length=1)]


class ServiceSetting(Settings):
    """A key of ``[load]`` and its value for a service."""

    key: Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z_]+)?$")]
    """The key, without ``load.``: ``retry.backoff``."""
    value: str | int | float | bool | list[str]
    source: Text
    """The page that says so, by its name."""


class ServiceLimit(Settings):
    """What a service does otherwise, or not at all."""

    what: Text
    source: Text
    """The page that says so, by its name."""


class Service(Settings):
    """A service: its settings of ``[load]``, and its limits."""

    name: Text
    product: Text
    scheme: Annotated[str, one_of("a scheme", lambda: [scheme for scheme, _ in _engine.schemes()])]
    """The scheme of its URLs: of the driver whose protocol and SQL the service speaks."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]
    """The month in which its sources were read."""
    notice: Text
    """Whether the settings have been run against the service itself."""
    setting: Annotated[list[ServiceSetting], Field(min_length=1)]
    limit: list[ServiceLimit] = Field(default_factory=list)


def service_names() -> tuple[str, ...]:
    """Give the names of the services that come with nephoscope."""
    return tuple(packaged("services"))


@cache
def service(name: str) -> Service:
    """Read a service that comes with nephoscope. Raises ``InputError``."""
    file = packaged("services").get(name)
    if file is None:
        raise InputError(f"there is no service {name!r}; services are {', '.join(service_names())}")
    return parsed(file.read_bytes(), name)


def parsed(content: bytes, name: str) -> Service:
    """Read the file of a service. Raises ``InputError`` that names the file, the key and what is allowed."""
    try:
        table = parse_toml(content)
    except ValueError as error:
        raise InputError(f"service {name}: not a TOML file: {error}") from error
    faults: list[str] = []
    found = validated(Service, table, f"service {name}", faults)
    if found is None:
        raise InputError("\n".join(faults))
    keys = [entry.key for entry in found.setting]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise InputError(f"service {name}: the same key twice: {', '.join(sorted(twice))}")
    if found.name != name:
        raise InputError(f"service {name}: its name is {found.name!r}, unlike its file's")
    return found


def over_service(table: Mapping[str, Any]) -> dict[str, Any]:
    """Put the keys of a ``[load]`` table over the settings of the service that it names."""
    name = table.get("service")
    if name not in service_names():  # the field's own validator refuses it
        return dict(table)
    merged: dict[str, Any] = {
        key: dict(value) if isinstance(value, dict) else value for key, value in table.items()
    }
    for entry in service(name).setting:
        first, _, second = entry.key.partition(".")
        place = merged.setdefault(first, {}) if second else merged
        if isinstance(place, dict):
            place.setdefault(second or first, entry.value)
    return merged
