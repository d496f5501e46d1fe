"""The analysis of row patterns."""
