"""What it takes to set parameters of a running cluster: which are right, and who is restarted in which order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope import _engine
from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nephoscope.systems.postgres.node import Node
    from nephoscope.systems.postgres.server import PostgresServer
    from nephoscope.systems.postgres.settings import SettingValue

_ANSWER_S = 10.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_NOT_LESS_THAN_THE_PRIMARY = (
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_wal_senders",
    "max_worker_processes",
)
"""A replica with less of one of these than its primary does not start."""


def shown(url: str, name: str) -> str:
    """Ask the server behind a URL what one of its parameters is, as it writes it.

    Raises:
        MeasurementError: it has no such parameter, or cannot be asked.

    """
    if not _NAME.fullmatch(name):
        raise MeasurementError(f"{name!r} is not the name of a PostgreSQL setting")
    admin = _engine.Admin(url, answer_timeout_s=_ANSWER_S)
    try:
        _, rows = admin.query(f"SELECT current_setting('{name}', true)")
    finally:
        admin.close()
    if rows[0][0] is None:
        raise MeasurementError(f"PostgreSQL has no setting {name}")
    return rows[0][0]


def needs_restart(server: PostgresServer, settings: Mapping[str, SettingValue]) -> bool:
    """Tell whether one of these settings, whose names have been checked, holds only after a restart.

    Raises:
        MeasurementError: PostgreSQL does not take them; it says why.

    """
    server.check_settings(settings)
    names = ", ".join(f"'{name}'" for name in settings)
    found = server.psql(f"SELECT name, context FROM pg_settings WHERE name IN ({names})")
    contexts = dict(line.split("|") for line in found.split())
    if unchangeable := [name for name, context in contexts.items() if context == "internal"]:
        raise MeasurementError(f"{', '.join(unchangeable)} cannot be set")
    return "postmaster" in contexts.values()


def order_of_restarts(
    primary: Node, replicas: list[Node], settings: Mapping[str, SettingValue]
) -> list[Node]:
    """List the nodes so that at no time a replica has less than the primary of what it needs as much of.

    Raises:
        MeasurementError: there is no such order.

    """
    names = [name for name in _NOT_LESS_THAN_THE_PRIMARY if name in settings]
    before = {name: int(primary.server.psql(f"SHOW {name}")) for name in names}
    changes = {name: int(settings[name]) - value for name, value in before.items()}
    falls = {change < 0 for change in changes.values() if change}
    if len(falls) > 1:
        raise MeasurementError(
            f"{', '.join(names)} cannot rise and fall at once: set them one after the other"
        )
    return [primary, *replicas] if falls == {True} else [*replicas, primary]
