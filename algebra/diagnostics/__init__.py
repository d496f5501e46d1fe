"""What errors show: the user's frames, values that were given, names that were meant."""
