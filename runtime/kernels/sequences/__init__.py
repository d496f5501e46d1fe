"""Compiled kernels that search for the matches of row patterns, over the rows of all partitions at once."""
