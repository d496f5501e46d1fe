"""Computes sums of frames that move without going over the rows that stay in them."""
