"""Patterns of situations: what holds of their matches, and in which order they are looked for."""
