"""The commands: what they do and print."""
