"""What relations know of models of contexts."""
