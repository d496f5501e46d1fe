"""Where state lives: a directory, or memory."""
