"""Designed experiments: what a study varies, run in a random order, and the effects read from the runs."""
