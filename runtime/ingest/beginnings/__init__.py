"""Beginnings of intervals among the rows of a stream."""
