"""What the analysis found, as text and as values."""
