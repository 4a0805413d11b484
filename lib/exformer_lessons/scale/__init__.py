"""The evidence on scale."""
