"""Spark's jobs by name, as its UI and its listeners show them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.algebra.evaluation import EvaluationError
from tidegate.runtime.engines.spark.eval.terms import raised_error
from tidegate.runtime.engines.spark.failures import cause_of


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Names the jobs inside the block in Spark's UI, and turns what a term raised in them into its error."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"tidegate {what}")
    try:
        yield
    except (PySparkException, Py4JJavaError, EvaluationError) as failure:  # Py4J's: a broadcast that failed
        error = failure if isinstance(failure, EvaluationError) else raised_error(failure)
        if error is None:
            raise
        message = f"{error.message} ({what})"
        raised = EvaluationError(error.code, message, hint=error.hint, because=error.problems[0].because)
        raise raised from cause_of(error, failure)
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]  # None clears it
