"""A system that is there already: its endpoints and resources are what the study says."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from nephoscope.systems.base import Provider, System, SystemSettings
from nephoscope.variables import endpoint


def _as_list(value: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    return [value] if isinstance(value, str) else value


Urls = Annotated[list[str], BeforeValidator(_as_list)]


class UrlSettings(SystemSettings):
    """The ``[system]`` table of a study that measures a system by its URLs.

    ``${NAME}`` in a URL stands for an environment variable, so that no password need stand in a study.
    """

    provider: Literal["url"] = "url"
    rw: Annotated[Urls, Field(min_length=1)]
    """The URLs of the endpoints that take writes; a single one needs no brackets."""
    ro: Urls = Field(default_factory=list)
    """The URLs of the read-only endpoints."""


class Url(Provider):
    """Hands out the endpoints of a study."""

    name: ClassVar[str] = "url"
    summary: ClassVar[str] = "a system that is there already, by the URLs of its endpoints"
    settings_type: ClassVar[type[SystemSettings]] = UrlSettings

    def __init__(self, settings: UrlSettings) -> None:
        """Take validated settings; touch nothing yet."""
        self._settings = settings

    def start(self) -> System:
        """Check the URLs. Raises ``InputError``."""
        rw = tuple(endpoint(url, "system.rw") for url in self._settings.rw)
        ro = tuple(endpoint(url, "system.ro") for url in self._settings.ro)
        return System(rw=rw, ro=ro, resources=self._settings.resources)

    def stop(self) -> None:
        """Nothing was started, so nothing is ended."""
