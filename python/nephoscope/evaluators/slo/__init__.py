"""The highest rate at which the latency stays within a limit."""
