"""Evaluators: what drives runs and turns what was stored into measurements. One a file."""
