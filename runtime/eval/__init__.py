"""Evaluates queries over finite relations with Polars, increment by increment. Both engines use it."""
