"""Windows that depend on rows or overlap: which there are, their rows, and the node with aggregates of these."""
