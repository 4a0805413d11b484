"""What the lesson on adapting a model needs besides the library."""
