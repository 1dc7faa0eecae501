"""Cassandra as this tool runs it: its nodes, and its rings."""
