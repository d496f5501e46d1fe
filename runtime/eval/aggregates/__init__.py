"""Grouping: `partials` for aggregates that merge, `compiled` a faster way for most of them, `whole` for the rest."""
