"""Folded buffers: what rows of a class become one row, and how increments read rows that stand for several."""
