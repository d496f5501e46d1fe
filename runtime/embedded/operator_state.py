"""What ordered operators keep, as files: the tables of one operator, or of several that have a share of its partitions each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from tidegate.runtime.kept_situations import END, SITUATIONS, START
from tidegate.runtime.progress import not_of_this_program
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import storage_errors
from tidegate.runtime.state.manifest import KeptRows, KernelState
from tidegate.runtime.state.store import FileRef, Store

#: The layout of what an operator keeps.
VERSION: Final = 1
#: Columns that have a partition's number-th key, and the number of a run; values have the latter first.
KEY, NUMBER = "key {}", "number"

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Share:
    """The partitions whose key of that place is hashed to `shard` out of `shards`."""

    key: int
    shard: int
    shards: int

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of the kept rows."""
        return rows.filter(shard_of(KEY.format(self.key), self.shards) == self.shard)


def shard_of(column: str, shards: int) -> pl.Expr:
    """The shard of each row; NULL is a key."""
    return pl.col(column).hash(0) % shards


def kept_rows(tables: Tables) -> tuple[KeptRows, ...]:
    """What each of an operator's tables holds."""
    return tuple(
        KeptRows(name, rows.height, _range(rows) if name in SITUATIONS else {}) for name, rows in tables.items()
    )


def _range(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """When situations began and, where that is known, ended."""
    columns = [rows.get_column(name) for name in (START, END) if name in rows.columns]
    return {one.name: (int(one.min()), int(one.max())) for one in columns}  # type: ignore[arg-type]  # int64, some rows


def whole_state(kept: Sequence[KeptRows], files: Sequence[FileRef]) -> KernelState:
    """The state of an operator in one place."""
    return KernelState(VERSION, tuple(files), [one.holds for one in kept], tuple(kept))


def shared_state(parts: Sequence[tuple[Sequence[KeptRows], Sequence[FileRef]]]) -> KernelState:
    """The state of operators with a share each, in the order of their shards."""
    values: Json = {"hash": _hash(), "shards": [[one.holds for one in kept] for kept, _ in parts]}
    files = tuple(file for _, files in parts for file in files)
    return KernelState(VERSION, files, values, tuple(one for kept, _ in parts for one in kept))


def read_state(store: Store, query: str, state: KernelState, share: Share | None = None) -> dict[str, pl.DataFrame]:
    """The tables of an operator, or of its share, from whatever parts they were written in; `StateError` TG504."""
    parts, hash_ = _parts(query, state)
    with storage_errors(f"reading the state of {query!r}"):
        if share is not None and hash_ == _hash() and len(parts) == share.shards:
            return {name: _table(store, file) for name, file in parts[share.shard]}
        tables = _joined([{name: _table(store, file) for name, file in part} for part in parts])
    return tables if share is None else _shared(tables, share)


def _parts(query: str, state: KernelState) -> tuple[list[list[tuple[str, FileRef]]], str]:
    """Names and files, part by part, and by which hash partitions were shared out."""
    found: list[Any]
    match state.values:
        case [*names]:
            found, hash_ = [names], ""
        case {"hash": str(hash_), "shards": [*found]}:
            pass
        case _:
            found, hash_ = [], ""
    known = [part for part in found if isinstance(part, list)]
    if state.version != VERSION or not known or known != found or sum(map(len, known)) != len(state.files):
        raise not_of_this_program(f"the state of {query!r:.200} in layout {state.version}")
    files = iter(state.files)
    return [[(str(name), next(files)) for name in part] for part in known], hash_


def _hash() -> str:
    """What shards rest on: another version may hash otherwise."""
    return f"polars {pl.__version__}"


def _table(store: Store, file: FileRef) -> pl.DataFrame:
    return pl.DataFrame(store.read_table(file.path))


def _joined(parts: Sequence[Tables]) -> dict[str, pl.DataFrame]:
    """The tables of all parts; runs are numbered anew, as each part has numbers of its own."""
    if len(parts) == 1:
        return dict(parts[0])
    found: dict[str, list[pl.DataFrame]] = {}
    following = 0
    for tables in parts:
        first = following
        for name, rows in tables.items():
            number = _number(name, rows)
            following = max(following, first + 1 + int(rows[number].max()))  # type: ignore[arg-type]  # int64, some rows
            found.setdefault(name, []).append(rows.with_columns(pl.col(number) + first))
    return {name: pl.concat(rows) for name, rows in found.items()}


def _shared(tables: Tables, share: Share) -> dict[str, pl.DataFrame]:
    """Of all tables what concerns a share of the partitions."""
    found = {name: share.of(rows) for name, rows in tables.items() if NUMBER in rows.columns}
    live = pl.concat([pl.Series(NUMBER, [], pl.Int64), *(rows[NUMBER] for rows in found.values())])
    for name, rows in tables.items():
        if name not in found:
            found[name] = rows.filter(pl.col(_number(name, rows)).is_in(live.implode()))
    return {name: rows for name, rows in found.items() if rows.height}


def _number(name: str, rows: pl.DataFrame) -> str:
    return rows.columns[0] if name.startswith("values ") else NUMBER
