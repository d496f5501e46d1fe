"""The embedded engine: in one process, with Polars."""
