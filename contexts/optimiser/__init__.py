"""The optimiser of queries in contexts: where contexts are looked up, and which queries share a look-up."""
