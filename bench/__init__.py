"""Time and memory of the library beside others: see `make bench`."""
