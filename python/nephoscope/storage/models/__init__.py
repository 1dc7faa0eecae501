"""Models of a storage tier's I/O, a file each."""
