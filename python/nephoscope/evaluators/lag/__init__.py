"""Replication lag: C."""
