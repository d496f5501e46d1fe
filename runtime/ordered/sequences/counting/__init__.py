"""The operator that counts the matches of a row pattern, and what it keeps."""
