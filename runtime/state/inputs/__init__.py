"""The consumed input: which files were read, and where they go afterwards."""
