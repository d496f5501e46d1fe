"""Temporal patterns: how matches are detected, what bounds and frees what they wait for, in which order they are looked for."""
