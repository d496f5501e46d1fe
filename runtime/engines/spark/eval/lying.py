"""Rows as workers store them for shards: those of a shard lie together, so that its task reads no others."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from tidegate.runtime.ordered.state import shard_hash, shard_of
from tidegate.runtime.plan.placement import MOST_SHARDS
from tidegate.runtime.state.shard_layout import ShardLayout

#: Fewer rows are not worth a row group of their own: a task reads some others with them as soon as it finds them.
ROWS_A_SHARD: Final = 1024


def stored_shards(parallelism: int) -> int:
    """Into how many shards segments are laid out for so many tasks: each task then reads whole ones."""
    return max(shards for shards in range(1, min(parallelism, MOST_SHARDS) + 1) if parallelism % shards == 0)


def by_shard(rows: pl.DataFrame, key: str, shards: int) -> tuple[pl.DataFrame, ShardLayout | None]:
    """The rows in the order of their shards, otherwise as they were. Where shards have few rows, it is fewer shards, of
    which each has the rows of several; few rows stay as they are.
    """
    shards = max(fewer for fewer in range(1, shards + 1) if shards % fewer == 0 and _are_enough(rows.height, fewer))
    if shards < 2:
        return rows, None
    shard = rows.select(shard_of(key, shards)).to_series().to_numpy()
    order = np.argsort(shard.astype(np.uint8), kind="stable")  # of bytes it counts instead of comparing
    counts = np.bincount(shard, minlength=shards)
    return rows[order], ShardLayout(key, shard_hash(), tuple(map(int, counts)))


def _are_enough(rows: int, shards: int) -> bool:
    return shards == 1 or rows >= ROWS_A_SHARD * shards
