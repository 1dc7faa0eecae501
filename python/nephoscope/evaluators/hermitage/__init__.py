"""Hermitage's cases: what each isolation level allows, shown by transactions that are interleaved by hand."""
