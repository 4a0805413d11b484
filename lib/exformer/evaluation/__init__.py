"""Measures of outputs and of cost: BLEU, ROUGE, perplexity, FLOPs."""
