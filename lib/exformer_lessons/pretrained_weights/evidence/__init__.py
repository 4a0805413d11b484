"""Records, sabotages and sweeps of the claims that the evidence measures."""
