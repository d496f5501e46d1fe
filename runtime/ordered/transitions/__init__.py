"""Applies candidate transitions to the contexts that hold in each partition."""
