"""What the lessons need beside the library: claims, records, figures, and a folder for each lesson."""

__version__ = "0.1.0"
