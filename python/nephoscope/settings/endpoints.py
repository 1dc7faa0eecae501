"""Endpoints of metrics beside the load."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from nephoscope.settings.base import Settings


def is_http(url: str) -> bool:
    """Tell whether a text is a URL of HTTP with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_user(url: str) -> str:
    if not is_http(url):
        raise ValueError("must be a URL such as http://10.0.0.5:9100/metrics")
    if "@" in urlsplit(url).netloc:
        raise ValueError("must be without user and password, as it is written into the run directory")
    return url


class MetricsEndpoint(Settings):
    """A program that shows metrics in Prometheus's text format, such as a node_exporter: asked once a second."""

    url: Annotated[str, AfterValidator(_without_user)]
    """Where it shows them."""
    keep: list[Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]] = Field(
        default=[], max_length=50
    )
    """Metrics to keep besides those of a host, by their names there; counters become rates."""
