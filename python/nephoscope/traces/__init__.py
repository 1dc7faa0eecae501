"""SQL traces: the statements that a server's log has, in one Parquet file."""
