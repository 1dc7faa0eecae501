"""The histories of a run, and of files: what transactions did and saw, checked for anomalies of isolation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nephoscope import _engine
from nephoscope.store.layout import HISTORIES

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 2**30
"""The histories' files of a run take no more; checking goes on."""
WITNESSES = 3
"""So many of each anomaly are told."""
ORDER = "real-time"
"""The checker looks for all orders, and tells which an anomaly needs."""
WINDOW_S = 60.0
"""For how long a file's transactions are held, in s of its own clock."""


def history_of(folder: Path) -> dict[str, Any]:
    """Describe for the engine where a run's histories go."""
    where = str(folder / HISTORIES)
    return {"folder": where, "order": ORDER, "most_bytes": MOST_BYTES, "witnesses": WITNESSES}


def check_file(path: Path, order: str, window_s: float = WINDOW_S) -> dict[str, Any]:
    """Check the history in a file: ours, or Elle's in EDN or JSON. Raises ``InputError`` with the line."""
    found: dict[str, Any] = json.loads(_engine.check_history(path, order, window_s, WITNESSES))
    return found
