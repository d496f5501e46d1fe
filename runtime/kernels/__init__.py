"""Compiled kernels, one operator per file. They are imported when first used, because numba takes half a second to
load.
"""
