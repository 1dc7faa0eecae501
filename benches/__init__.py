"""Side-by-side comparisons with other load generators: `make bench`."""
