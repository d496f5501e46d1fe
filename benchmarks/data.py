"""The files and the Spark session that benchmarks share, made when they are first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from benchmarks import queries
from benchmarks.files import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Native streaming holds its state in the JVM: with the 2 GiB that sessions have otherwise it mostly collects garbage.
CONFIG = {"spark.driver.memory": "8g"}
#: Files of the same rows for Spark, which reads four a batch.
LARGE_FILES = 12


@dataclass
class Data:
    """Generated rows in a folder, of the size of a run; a context that ends the session."""

    folder: Path
    rows: int
    keys: int
    batches: int
    spark_batches: int

    def __enter__(self) -> Data:
        return self

    def __exit__(self, *_: object) -> None:
        if "spark" in self.__dict__:
            self.spark.stop()

    @cached_property
    def files(self) -> Path:
        """All rows, a file a batch."""
        return self._write("files", queries.rows(self.rows, self.keys), self.batches)

    @cached_property
    def few(self) -> Path:
        """A few of them, to warm up with."""
        return self._write("few", queries.rows(self.rows, self.keys).head(min(self.rows // 10, 200_000)), 8)

    @cached_property
    def large(self) -> Path:
        """All rows in few files."""
        return self._write("large", queries.rows(self.rows, self.keys), LARGE_FILES)

    @cached_property
    def quarter(self) -> tuple[Path, int]:
        """The first quarter of them in as many files, for what takes minutes elsewhere; and how many rows these are."""
        rows = queries.rows(self.rows, self.keys).head(self.rows // 4)
        return self._write("quarter", rows, LARGE_FILES), rows.height

    @cached_property
    def wide(self) -> Path:
        """As many rows of more columns, hardly any two of a key."""
        return self._write("wide", queries.wide_rows(self.rows), LARGE_FILES)

    @cached_property
    def wide_few(self) -> Path:
        return self._write("wide_few", queries.wide_rows(self.rows).head(min(self.rows // 10, 200_000)), 8)

    @cached_property
    def spark(self) -> SparkSession:
        from tidegate.runtime.engines.spark.setup.session import spark_session

        return spark_session("tidegate-bench", config=CONFIG)

    def _write(self, name: str, rows: pl.DataFrame, parts: int) -> Path:
        write_files(self.folder / name, rows, parts)
        return self.folder / name
