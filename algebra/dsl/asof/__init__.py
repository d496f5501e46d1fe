"""The row of another relation that is nearest in time, as users ask for it."""
