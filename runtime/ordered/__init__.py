"""Operators that gather the rows of a partition in order of time, with their state."""
