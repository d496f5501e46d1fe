"""Gives rows the row of another input that is nearest in time."""
