"""The face of ``_engine``: a load's run, its probes, its data."""
