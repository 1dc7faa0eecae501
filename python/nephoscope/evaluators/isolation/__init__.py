"""Isolation: whether what transactions see contradicts the level that they were promised."""
