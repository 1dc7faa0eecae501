"""Consistency as a client sees it: staleness, the guarantees of a session, long forks."""
