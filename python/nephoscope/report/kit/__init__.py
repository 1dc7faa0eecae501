"""What whoever shows something in the report may use."""
