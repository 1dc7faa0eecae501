"""The report of a run: one HTML file, offline.

``build.build_view`` reads a run through a ``RunReader`` and computes all that the page shows; ``page.render`` lays
it out. The page reads nothing but the run directory (``docs/run-directory.md``), so it can be written again at
any time.
"""
