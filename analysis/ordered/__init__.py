"""What follows from operators that gather rows in order of time: a family a file or folder."""
