"""Gives rows values of the rows around them."""
