"""Zones: what holds of instants, as matrices of distances, made of formulas."""
