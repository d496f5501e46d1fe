"""What Spark is told of a program's input: when there is a batch, and which files it reads."""
