"""The exercises: a module of graders and one of known mistakes per lesson, and what all graders share."""
