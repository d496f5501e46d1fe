"""Progress of results: which attributes progress, how far, and which rows are final."""
