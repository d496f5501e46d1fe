"""Candidate transitions, partition by partition in order of time, and the context windows that they begin and end."""
