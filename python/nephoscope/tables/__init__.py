"""One model of tables: terminal, Markdown, CSV, Parquet."""
