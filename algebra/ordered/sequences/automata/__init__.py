"""Row patterns as automata."""
