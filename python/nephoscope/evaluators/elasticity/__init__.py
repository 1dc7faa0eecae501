"""Elasticity: E1."""
