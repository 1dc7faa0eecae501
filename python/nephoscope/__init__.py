"""nephoscope: the instrument that measures cloud databases."""

__version__ = "0.1.0"
