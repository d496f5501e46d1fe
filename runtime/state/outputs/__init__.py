"""Results between staging and publication, and directories of results."""
