"""Redis as a product that this tool runs."""
