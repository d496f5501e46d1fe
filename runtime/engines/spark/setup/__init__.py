"""A Spark session for Tidegate: a Java, a Python, the library on executors."""
