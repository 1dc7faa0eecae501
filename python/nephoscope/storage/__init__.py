"""The storage tier under a database: its I/O captured, learned, generated, executed (CDSBen)."""
