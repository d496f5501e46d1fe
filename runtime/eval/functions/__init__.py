"""The functions of terms as expressions: the walk that all engines share, and their forms in Polars."""
