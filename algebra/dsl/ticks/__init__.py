"""Instants at equal distances, as users ask for them."""
