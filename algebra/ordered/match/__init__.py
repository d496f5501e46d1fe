"""Matches of patterns: their node, its meaning, and when a condition on endpoints is certain."""
