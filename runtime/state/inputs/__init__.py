"""What of the input was read, and where files go that were."""
