"""PostgreSQL's servers, nodes and clusters."""
