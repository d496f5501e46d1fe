"""A program driven on either engine by the same test."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: `testing.drive`, on one engine or the other.
Start = Callable[..., testing.Drive]


@pytest.fixture(params=["embedded", pytest.param("spark", marks=pytest.mark.spark)])
def start(request: pytest.FixtureRequest) -> Start:
    if request.param == "embedded":
        return testing.drive
    session: SparkSession = request.getfixturevalue("spark")
    return lambda program, **options: testing.drive(program, spark=session, **options)
