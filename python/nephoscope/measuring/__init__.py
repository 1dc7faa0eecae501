"""A measurement from beginning to end."""
