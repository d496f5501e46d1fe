"""Numbers the rows of groups in an order of values."""
