"""The kit from which sections of the report are built."""
