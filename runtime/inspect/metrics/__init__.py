"""What each batch did, as figures for others."""
