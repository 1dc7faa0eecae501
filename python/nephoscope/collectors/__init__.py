"""What is measured beside a load, a file a source."""
