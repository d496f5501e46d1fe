"""Row patterns, as users write them in Python."""
