"""Temporal patterns matched on situations."""
