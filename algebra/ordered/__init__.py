"""Operators that gather the rows of a partition in order of time: a family a file."""
