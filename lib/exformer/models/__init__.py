"""Whole models: from ids to logits."""
