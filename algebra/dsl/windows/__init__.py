"""Windows that depend on rows or overlap, as users ask for them."""
