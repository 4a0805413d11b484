"""Lesson 18: what bounds the speed of generation."""
