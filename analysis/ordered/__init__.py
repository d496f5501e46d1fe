"""The analysis of operators that gather rows in order of time: one file or folder per family."""
