"""Files and state dicts: what every other package reads and writes with."""
