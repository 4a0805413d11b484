"""Time and memory of the library beside others: `python bench/run.py`, `python bench/byte_pairs.py`."""
