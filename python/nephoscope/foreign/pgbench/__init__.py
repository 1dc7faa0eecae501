"""Scripts of pgbench, by its documentation of PostgreSQL 15 to 18: meta commands, expressions, its command line."""
