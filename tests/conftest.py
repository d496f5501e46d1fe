"""What all tests share: the Spark session, and keeping its users in one process."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:  # most test processes never load Spark
    from pyspark.sql import SparkSession

# The example database would be the one thing that differs between a fresh clone and a used one; the seed is
# fixed for the same reason. `make test-all` draws other programs by the seeds of its shards.
settings.register_profile("tidegate", deadline=None, derandomize=True, database=None)
settings.load_profile("tidegate")

# The JVMs of tests end before their second compiler has earned what it costs: 2 of 5 seconds of CPU. Processes that
# tests start have it from here too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before xdist reads the groups, and after that
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Tests of one group run in one process: those on Spark, and those that share what a fixture of their module makes.

    xdist goes by the ends of their names, and pytest 9.2 keeps names where xdist 3.8 does not change them.
    """
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.get_closest_marker("xdist_group") is None and _has_fixture_of_module(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield
    for item in items if hasattr(config, "workerinput") else ():
        group = item.get_closest_marker("xdist_group")
        if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
            from _pytest.nodeid import NodeId  # a pytest of before has none, and needs none

            item._id = NodeId.parse(f"{item.nodeid}@{group.args[0]}")


def _has_fixture_of_module(item: pytest.Item) -> bool:
    """Whether a fixture is made once for tests of its module: in two processes it would be made twice."""
    named = getattr(item, "_fixtureinfo", None)
    return named is not None and any(found[-1].scope == "module" for found in named.name2fixturedefs.values() if found)


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
