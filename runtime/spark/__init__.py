"""The Spark engine; the only package that imports pyspark, and only once a session is asked for."""
