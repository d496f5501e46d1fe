"""What is read and taken in of the next batch while a batch runs."""
