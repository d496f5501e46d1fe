"""Compiled kernels, one operator per file, imported when first used: numba takes half a second to load."""
