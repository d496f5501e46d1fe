"""The search for matches of patterns whose candidates are ranges of sorted situations."""
