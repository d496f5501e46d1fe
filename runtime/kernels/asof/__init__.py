"""Compiled kernels for the row nearest in time, over the rows of all partitions at once."""
