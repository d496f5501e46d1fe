"""Generated rows as Parquet files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import polars as pl


def write_files(folder: Path, frame: pl.DataFrame, parts: int) -> None:
    """The rows in order, in so many files; the folder is made.

    Files are a second apart in age: Spark's own streams, which are measured beside, read those of one millisecond in
    any order, and their rows would be late there.
    """
    folder.mkdir()
    size, now = -(-frame.height // parts), time.time()
    for number in range(parts):
        path = folder / f"{number:05d}.parquet"
        frame.slice(number * size, size).write_parquet(path)
        os.utime(path, (now - parts + number,) * 2)
