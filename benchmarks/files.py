"""Generated rows as Parquet files."""

from __future__ import annotations

from pathlib import Path

import polars as pl


def write_files(folder: Path, frame: pl.DataFrame, parts: int) -> None:
    """The rows in order, in so many files; the folder is made."""
    folder.mkdir()
    size = -(-frame.height // parts)
    for number in range(parts):
        frame.slice(number * size, size).write_parquet(folder / f"{number:05d}.parquet")
