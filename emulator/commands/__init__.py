"""One module for each command; each has `register` and `execute`."""
