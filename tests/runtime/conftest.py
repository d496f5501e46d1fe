"""A program driven on either engine by the same test; on Spark it is a long one where nothing else is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: `testing.drive`, on one engine or the other.
Start = Callable[..., testing.Drive]


#: The engines for `start` in tests that are quick on both: `@pytest.mark.parametrize("start", EITHER, indirect=True)`.
EITHER = ["embedded", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture(params=["embedded", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])])
def start(request: pytest.FixtureRequest) -> Start:
    if request.param == "embedded":
        return testing.drive
    session: SparkSession = request.getfixturevalue("spark")
    return lambda program, **options: testing.drive(program, spark=session, **options)
