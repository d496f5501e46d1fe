"""Folding: which rows of an occurrence that stay for ever may become one row per class (rules R30 to R34)."""
