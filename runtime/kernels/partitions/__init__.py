"""Compiled kernels that put the rows of all partitions in order."""
