"""Timelines: situations and matches of each partition as pictures."""
