"""The run directory (``docs/run-directory.md``): written while a run goes on, read ever after."""

from nephoscope.store.layout import FILES, new_run_directory
from nephoscope.store.protocol import Phase
from nephoscope.store.reader import StoredRun
from nephoscope.store.writer import RunWriter

__all__ = ["FILES", "Phase", "RunWriter", "StoredRun", "new_run_directory"]
