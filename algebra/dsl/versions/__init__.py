"""Changes as tables of versions, as users write them."""
