"""The physical plan: what is buffered, what an increment evaluates, and in which order. It knows no engine."""
