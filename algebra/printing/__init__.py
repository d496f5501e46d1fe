"""Terms, formulas and plans as people read them."""
