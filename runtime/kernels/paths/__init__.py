"""Paths of an automaton through the rows of a partition, counted and not listed."""
