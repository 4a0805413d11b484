"""The evidence on what is beyond text."""
