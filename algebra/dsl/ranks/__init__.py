"""Places of rows in their groups, as users ask for them."""
