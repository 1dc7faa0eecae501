"""What a setting of a running server is, as the server itself says it."""

from __future__ import annotations

import re

from nephoscope import _engine
from nephoscope.dialects import dialect_of
from nephoscope.errors import MeasurementError

_ANSWER_S = 10.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def tells(url: str) -> bool:
    """Whether the system behind a URL can be asked for its settings."""
    dialect = dialect_of(url)
    return dialect is not None and dialect.setting is not None


def shown(url: str, name: str) -> str:
    """Ask the server behind a URL what one of its settings is, as it writes it.

    Raises:
        MeasurementError: it has no such setting, or cannot be asked.

    """
    dialect = dialect_of(url)
    if dialect is None or dialect.setting is None:
        raise MeasurementError(f"this system does not tell what its setting {name} is")
    if not _NAME.fullmatch(name):
        raise MeasurementError(f"{name!r} is not the name of a {dialect.product} setting")
    admin = _engine.Admin(url, answer_timeout_s=_ANSWER_S)
    try:
        _, rows = admin.query(dialect.setting.format(name=dialect.literal(name)))
    finally:
        admin.close()
    if not rows or rows[0][0] is None:
        raise MeasurementError(f"{dialect.product} has no setting {name}")
    return rows[0][0]
