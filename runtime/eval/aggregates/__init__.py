"""Grouping: whole groups, and partial results that merge."""
