"""State: which stored rows still matter, for how long, and how many there are at most."""
