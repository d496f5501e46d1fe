"""Queries in contexts as text: CAESAR's language, read and printed back."""
