"""What makes Spark run a batch: a source without rows, which has something new whenever the driver says so.

Spark asks this source for its latest offset before each batch, in a Python process of the driver's machine. The offset
is what a file beside Spark's checkpoint says: a name that the driver makes anew for each wake-up. So Spark remembers
one name, however long it runs.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.udf import _wrap_function

from tidegate.runtime.engines.spark.setup.quick_python import quick_python
from tidegate.runtime.state.errors import storage_errors

#: Beside what Spark writes, so that it goes where that goes.
FILE: Final = "spark/tidegate-wake-up.json"
#: Characters of that file that count.
_LENGTH: Final = 100


class WakeUpReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offsets of wake-ups, as the file at `path` has them; there are no rows."""

    def __init__(self, path: str) -> None:
        self.path = path

    def initialOffset(self) -> dict[str, str]:  # Spark's name, as all of them here
        return {"wake_up": ""}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing: it is for the driver to say how many batches there are."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        try:
            with open(self.path, encoding="latin-1") as file:
                return {"wake_up": file.read(_LENGTH)}  # whatever is there: if it is damaged, there is a batch more
        except FileNotFoundError:
            return start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())


class WakeUpSource(DataSource):
    """The source of wake-ups, with the file's path as its option `path`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return "tidegate_wake_ups"

    def schema(self) -> str:
        return "source string"

    def streamReader(self, schema: object) -> WakeUpReader:
        return WakeUpReader(self.options["path"])


# Spark's processes get these classes whole: they need not find, and not load, this library for them.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class WakeUps:
    """The wake-ups of a query whose checkpoint lies in a directory."""

    def __init__(self, root: str) -> None:
        self._path = Path(root) / FILE
        self._lock = Lock()  # batches, calls and looks come from threads of their own
        self.waiting = False
        """Whether Spark was told to run a batch that has not begun."""

    def wake(self) -> None:
        """Let Spark run a batch, whatever is new."""
        written = self._path.with_name(f".{self._path.name}.tmp")
        with self._lock, storage_errors("letting Spark run a batch"):
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666)
            with open(descriptor, "w", encoding="ascii") as file:
                json.dump({"wake_up": uuid.uuid4().hex}, file)
            written.replace(self._path)
        self.waiting = True

    def begun(self) -> None:
        """The batch that Spark was told to run has begun."""
        self.waiting = False

    def frame(self, spark: SparkSession) -> DataFrame:
        """The streaming DataFrame of the wake-ups: one column, `source`, and no rows."""
        with _active(spark):
            _register(spark)
            return spark.readStream.format(WakeUpSource.name()).option("path", str(self._path.absolute())).load()


def _register(spark: SparkSession) -> None:
    """As `spark.dataSource.register`, with a Python that starts sooner where there is one."""
    sc, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    wrapped = _wrap_function(sc, WakeUpSource)
    python = quick_python(sc.pythonExec)
    if python is not None:
        of = wrapped
        wrapped = jvm.SimplePythonFunction(
            of.command(),
            of.envVars(),
            of.pythonIncludes(),
            python,
            of.pythonVer(),
            of.broadcastVars(),
            of.accumulator(),
        )
    source = getattr(jvm, "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource")(wrapped)
    spark._jsparkSession.dataSource().registerPython(WakeUpSource.name(), source)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes a session this thread's active one meanwhile: Spark looks for a source there, whichever session is
    asked.
    """
    sessions = spark._jvm.SparkSession  # type: ignore[union-attr]
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
