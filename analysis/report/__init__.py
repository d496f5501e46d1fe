"""The findings of the analysis, as text and as values."""
