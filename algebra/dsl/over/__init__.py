"""Values of the rows around a row, as users write them."""
