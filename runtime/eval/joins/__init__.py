"""Joins of two frames: by equal keys, by ranges, and by any condition."""
