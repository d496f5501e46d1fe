"""Tasks of the Spark engine: what goes to workers as text and comes back so, and what a worker holds between two."""
