"""Side-by-side comparisons with other load generators: ``make bench``, or ``make bench ONLY=name``.

A figure is a ratio, or a distance from a known truth, measured within one run on one machine: the sides take turns, so
that a machine which slows down slows both. What is printed and kept in ``benches/results.json`` is the median of the
turns with their spread. Nothing here is a test: a bar that does not hold is a figure, not a failure.
"""
