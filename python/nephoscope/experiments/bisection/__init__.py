"""Bisection: which of a range of versions changed a figure, by runs that are repeated as often as it takes."""
