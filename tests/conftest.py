"""What all tests share: the Spark session, and keeping its users in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:  # most test processes never load Spark
    from pyspark.sql import SparkSession

# The example database would be the one thing that differs between a fresh clone and a used one; the seed is
# fixed for the same reason. `make test-all` draws other programs by the seeds of its shards.
settings.register_profile("tidegate", deadline=None, derandomize=True, database=None)
settings.load_profile("tidegate")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for the whole run; tests that use it carry the marker `spark`."""
    from tidegate.runtime.engines.spark.setup.session import spark_session

    session = spark_session(
        "tidegate-tests",
        master="local[2]",
        config={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()
    os.environ.pop("PYSPARK_PYTHON", None)
