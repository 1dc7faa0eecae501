"""The results of stored runs: scores, verdicts, tables, comparisons."""
