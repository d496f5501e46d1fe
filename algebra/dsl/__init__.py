"""The Python DSL: handles around terms and nodes that check names and types where the user writes them."""
