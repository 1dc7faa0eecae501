"""One section of the page a file: each turns a run into the part of the view that it names."""
