"""Logits -> token ids: greedy decoding, sampling, beam search, translation."""
