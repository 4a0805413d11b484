"""Files and weights: what every other package reads and writes with."""
