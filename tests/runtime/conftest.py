"""A program driven on either engine by the same test, on Spark in a long one where nothing else is said; and the files
that are read, by thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate import testing
from tidegate.runtime.ingest import inputs

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


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The files in the order in which they were read, and by which thread."""
    found: list[tuple[str, str]] = []
    original = inputs.read_file

    def reading(path: str, *rest: Any) -> Any:
        found.append((Path(path).stem, threading.current_thread().name.partition("_")[0]))
        return original(path, *rest)

    monkeypatch.setattr(inputs, "read_file", reading)
    return found
