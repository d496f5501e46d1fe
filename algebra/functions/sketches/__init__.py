"""Sketches: what is kept of many values so that something is nearly known of them."""
