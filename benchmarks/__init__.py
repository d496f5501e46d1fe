"""What prints the figures that the docs quote: `make bench`."""
