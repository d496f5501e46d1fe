"""Compiled kernels, one operator a file. Imported when one runs: numba takes half a second to load."""
