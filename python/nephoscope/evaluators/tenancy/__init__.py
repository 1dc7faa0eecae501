"""Tenants of one system: T."""
