"""Packages that only some uses need, and what to install where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError

_SPARK = ("pyspark", "py4j", "pandas")


@contextmanager
def spark_extra() -> Iterator[None]:
    """`QueryError` TG422 where what is imported inside needs Spark, and its packages are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _SPARK:
            raise
        with Here():
            raise QueryError(
                "TG422",
                f"Spark is not installed here: there is no {error.name.partition('.')[0]}",
                hint="pip install 'tidegate[spark]', and 'tidegate[spark,java]' where there is no Java",
            ) from None  # the message has what the other error says, and a first user needs no second traceback
