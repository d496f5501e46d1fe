"""What a worker's process holds from one task to the next, of a run and of a job, so that a task reads only what it
lacks.

Nothing depends on it: a worker that is lost, or gets another share, reads again. What is held of an operator counts
only where it is what the batch goes on from, by the files that say it and by how far it has come.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
from pyspark.serializers import CloudPickleSerializer

from tidegate.algebra.time import Extended
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.state import Part
from tidegate.runtime.plan.steps import Progress
from tidegate.runtime.state.store.local import LocalStore

#: A process holds operators of so many bytes in files, and static tables of so many bytes in memory, for each run.
MOST_BYTES: Final = 64 << 20
#: Of so many runs, the last that had tasks here.
MOST_RUNS: Final = 4
#: Of so many jobs, the last that had tasks here.
MOST_JOBS: Final = 4


@dataclass(frozen=True, slots=True)
class HeldOperator:
    """The operator of a share of the partitions after a batch: the files that say the same, and how far it has come."""

    part: Part
    reached: Mapping[str, Extended]
    operator: Operator

    @property
    def bytes(self) -> int:
        return sum(file.bytes for delta in self.part for file in delta.files)


@dataclass(slots=True)
class HeldOperators:
    """Operators by query, shard, and number of shards; those that were kept last stay."""

    most_bytes: int = field(default_factory=lambda: MOST_BYTES)
    _held: OrderedDict[tuple[str, int, int], HeldOperator] = field(default_factory=OrderedDict)

    def take(self, query: str, shard: int, shards: int, part: Part, old: Progress, new: Progress) -> Operator | None:
        """The operator of a share as these files say it, for an increment from `old` to `new`; what is taken is held no
        longer.

        Of that query, whatever has come to neither of the two is out of date.
        """
        for key in [key for key, held in self._held.items() if key[0] == query and held.reached not in (old, new)]:
            del self._held[key]
        held = self._held.pop((query, shard, shards), None)
        is_same = held is not None and (held.part, held.reached) == (part, old)
        return held.operator if held is not None and is_same else None

    def keep(self, query: str, shard: int, shards: int, held: HeldOperator) -> None:
        """Holds an operator that has come as far as an increment, if there is room for it."""
        self._held.pop((query, shard, shards), None)
        self._held[query, shard, shards] = held
        while sum(one.bytes for one in self._held.values()) > self.most_bytes:
            self._held.popitem(last=False)


@dataclass(slots=True)
class HeldTables:
    """Static tables by path. Their files never change."""

    most_bytes: int = field(default_factory=lambda: MOST_BYTES)
    _held: dict[str, pl.DataFrame] = field(default_factory=dict)

    def of(self, path: str) -> pl.DataFrame:
        if path in self._held:
            return self._held[path]
        table = pl.read_parquet(path, glob=False)
        if sum(held.estimated_size() for held in (table, *self._held.values())) <= self.most_bytes:
            self._held[path] = table
        return table

    def all_of(self, paths: Mapping[str, str], names: Iterable[str]) -> dict[str, pl.DataFrame]:
        return {name: self.of(paths[name]) for name in set(names)}


@dataclass(slots=True)
class HeldRun:
    """What is held of a run: its store, which knows the directories that are there, static tables, and operators; and
    the queries that were evaluated here.
    """

    store: LocalStore
    tables: HeldTables = field(default_factory=HeldTables)
    operators: HeldOperators = field(default_factory=HeldOperators)
    evaluated: set[str] = field(default_factory=set)


_RUNS: OrderedDict[str, HeldRun] = OrderedDict()
_SHARED: OrderedDict[bytes, Any] = OrderedDict()


def packed(shared: object) -> bytes:
    """What all tasks of a job have in common, as it goes to each."""
    data: bytes = CloudPickleSerializer().dumps(shared)  # type: ignore[no-untyped-call]  # PySpark has no types for it
    return data


def shared_of(packed: bytes) -> Any:
    """The same in a worker, which reads it once, however many tasks of the job it has. Nothing changes it."""
    shared = _SHARED.pop(packed, None)
    if shared is None:
        shared = CloudPickleSerializer().loads(packed)  # type: ignore[no-untyped-call]  # PySpark has no types for it
    _SHARED[packed] = shared
    while len(_SHARED) > MOST_JOBS:
        _SHARED.popitem(last=False)
    return shared


def held_of(run: str, root: str) -> HeldRun:
    """What this process holds of a run; `run` is of one start of a program, and no other."""
    held = _RUNS.pop(run, None) or HeldRun(LocalStore(root))
    _RUNS[run] = held
    while len(_RUNS) > MOST_RUNS:
        _RUNS.popitem(last=False)
    return held
