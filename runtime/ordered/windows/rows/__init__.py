"""Computes windows from rows that are kept, where an aggregate needs every value."""
