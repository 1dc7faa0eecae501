"""A parameter that takes several values."""
