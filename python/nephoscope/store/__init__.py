"""The run directory (``docs/run-directory.md``): written while a run goes on, read ever after."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.store.layout import FILES, new_run_directory
    from nephoscope.store.protocol import Phase
    from nephoscope.store.reader import StoredRun
    from nephoscope.store.writer import RunWriter

__all__ = ["FILES", "Phase", "RunWriter", "StoredRun", "new_run_directory"]

_PLACES = {
    "FILES": "layout",
    "Phase": "protocol",
    "RunWriter": "writer",
    "StoredRun": "reader",
    "new_run_directory": "layout",
}


def __getattr__(name: str) -> object:
    """Load what is asked for: pyarrow takes long, and a command without a run needs none."""
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
