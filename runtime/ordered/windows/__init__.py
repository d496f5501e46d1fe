"""Computes windows that depend on rows or overlap."""
