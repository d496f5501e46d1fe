"""Derives situations from the events of a partition."""
