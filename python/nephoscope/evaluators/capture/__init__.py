"""A grid of open loads whose I/O is captured."""
