"""Computes instants at equal distances that follow rows."""
