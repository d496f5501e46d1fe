"""Situations derived from the events of a partition."""
