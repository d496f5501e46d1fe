"""Files whose rows lie by shard: who reads one shard reads few of the others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

from tidegate.runtime.state.codec import canonical, plain

#: Where a Parquet file's own metadata has its layout.
METADATA: Final = b"tidegate.shards"
_OTHER: Final = "its rows do not lie as its layout says"


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows whose column `key` has a hash, by the function `hash`, that is `shard` modulo `shards`."""

    key: str
    hash: str
    shard: int
    shards: int


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """How the rows of a file lie: those of shard 0 first, then those of shard 1; `rows` says how many each has.

    Every shard that has rows is a row group. Key and hash are as in `Shard`.
    """

    key: str
    hash: str
    rows: tuple[int, ...]

    @property
    def filled(self) -> list[int]:
        """The shards that have rows, in order."""
        return [shard for shard, rows in enumerate(self.rows) if rows]

    def groups(self, wanted: Shard) -> list[int]:
        """The row groups in which rows of a shard may be.

        Rows that are equal modulo both numbers of shards are equal modulo what divides both.
        """
        if (self.key, self.hash) != (wanted.key, wanted.hash):
            return list(range(len(self.filled)))
        step = gcd(len(self.rows), wanted.shards)
        return [group for group, shard in enumerate(self.filled) if shard % step == wanted.shard % step]

    def pieces(self, table: Any) -> list[Any]:
        """The rows of each shard that has some, of a table that lies so."""
        pieces, start = [], 0
        for shard in self.filled:
            pieces.append(table.slice(start, self.rows[shard]))
            start += self.rows[shard]
        return pieces

    def to_metadata(self) -> dict[bytes, bytes]:
        return {METADATA: canonical(plain(self)).encode()}

    @classmethod
    def of_file(cls, metadata: Any) -> ShardLayout | None:
        """The layout of a Parquet file, from its metadata; None for one that has none, `ValueError` for another.

        That each row group has its rows is for whoever reads it to see; so a task need not look at those of others.
        """
        text = (metadata.metadata or {}).get(METADATA)
        if text is None:
            return None
        layout = cls._parsed(json.loads(text))
        if (metadata.num_row_groups, metadata.num_rows) != (len(layout.filled), sum(layout.rows)):
            raise ValueError(_OTHER)
        return layout

    @classmethod
    def _parsed(cls, given: Any) -> ShardLayout:
        match given:
            case {"key": str(key), "hash": str(hash_), "rows": list(rows), **more} if not more:
                if all(type(count) is int and count >= 0 for count in rows):
                    return cls(key, hash_, tuple(rows))
        raise ValueError("it says of no layout how its rows lie")

    def read(self, file: Any, wanted: Shard) -> Any:
        """The rows of a Parquet file that lies so which may be of a shard; `ValueError` where it does not lie so."""
        groups = self.groups(wanted)
        filled = self.filled
        if any(file.metadata.row_group(group).num_rows != self.rows[filled[group]] for group in groups):
            raise ValueError(_OTHER)
        return file.read_row_groups(groups, use_threads=len(groups) > 1)
