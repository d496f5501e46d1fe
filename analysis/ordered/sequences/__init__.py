"""The analysis of row patterns, and of those whose matches are counted without listing them."""
