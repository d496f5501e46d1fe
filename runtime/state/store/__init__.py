"""Stores of state: a directory, or memory."""
