"""Cards: the result of a run in one small file that can be checked against the run, and boards of them."""
