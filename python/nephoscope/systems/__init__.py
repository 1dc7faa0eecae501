"""Providers: how a system under test is had. One a file."""
