"""What Spark's jobs are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def descriptions(spark: SparkSession) -> dict[int, str]:
    """What Spark's jobs are called, by number."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    every = [jobs.apply(i) for i in range(jobs.size())]
    return {job.jobId(): job.description().get() for job in every if job.description().isDefined()}
