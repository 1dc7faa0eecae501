"""What a stored run comes to: scores, verdicts, tables, comparisons."""
