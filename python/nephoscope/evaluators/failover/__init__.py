"""Failures: F and R."""
