"""Files of rejected rows that are full, of which there may be any number."""
