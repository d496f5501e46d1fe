"""Terms with their types: which kernel computes each operation, and what is known of its values before it runs."""
