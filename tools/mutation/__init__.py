"""Mutants: which there are, which tests should kill them, and how one is put into a process that runs already."""
