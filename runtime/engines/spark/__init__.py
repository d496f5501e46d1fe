"""The Spark engine; the only package whose modules need pyspark to be loaded."""
