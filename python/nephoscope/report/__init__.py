"""The report of a run: one HTML file, offline.

``build_view`` reads a run through a ``RunReader`` and computes all that the page shows; ``render`` lays it
out. The page reads nothing but the run directory (``docs/run-directory.md``), so it can be written again at
any time.
"""

from nephoscope.report.build import build_view
from nephoscope.report.page import render
from nephoscope.report.view import ReportView
from nephoscope.store.protocol import ALL, RunReader, Selection

__all__ = ["ALL", "ReportView", "RunReader", "Selection", "build_view", "render"]
