"""Federations: the temporal relations between result rows and their sources, with the lines that state them."""
