"""Scale-out: E2."""
