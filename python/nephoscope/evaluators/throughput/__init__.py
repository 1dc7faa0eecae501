"""Throughput: P."""
