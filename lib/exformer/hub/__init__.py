"""Trained models <-> folders and names."""
