"""Operators that users write."""
