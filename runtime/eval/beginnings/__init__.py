"""Intervals that have begun and not ended: what is remembered of them, and whose partners they are."""
