"""The limit of matches that begin with one row."""
