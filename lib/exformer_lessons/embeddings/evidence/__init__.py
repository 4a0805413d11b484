"""Records and sabotages of the claims that the evidence measures."""
