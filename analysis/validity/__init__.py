"""What is refused, why, and what would mend it."""
