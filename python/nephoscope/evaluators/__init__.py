"""Evaluators: they drive runs and turn stored runs into measurements. A folder each."""
