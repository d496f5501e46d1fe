"""Facts about a query, derived before anything runs: validity, propagation, pass, keep, relevance, state bounds."""
