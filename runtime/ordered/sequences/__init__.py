"""Row patterns at work."""
