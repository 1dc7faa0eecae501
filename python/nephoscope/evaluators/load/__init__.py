"""A course of load."""
