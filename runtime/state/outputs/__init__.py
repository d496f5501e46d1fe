"""Results on their way out, and directories of results."""
