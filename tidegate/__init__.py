"""Tidegate: temporal relational algebra over event streams, analysed before it runs, incremental on Spark and embedded."""

__version__ = "0.1.0"
