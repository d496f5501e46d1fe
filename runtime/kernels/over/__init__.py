"""Compiled kernels for values of the rows around a row, over the rows of all partitions at once."""
