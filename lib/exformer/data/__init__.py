"""Token ids -> batches: padding, windows, samplers, masking."""
