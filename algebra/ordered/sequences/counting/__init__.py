"""Matches that are counted and not listed."""
