"""Increments as Spark DataFrames, or shard by shard in workers."""
