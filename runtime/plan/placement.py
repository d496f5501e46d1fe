"""Where Spark evaluates an increment: in the driver, in shards of a key, or as DataFrames. The bytes to read decide."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.runtime.arguments import check_bytes
from tidegate.runtime.plan.sharding import DRIVER_BYTES, SHARD_BYTES
from tidegate.runtime.plan.steps import QueryPlan
from tidegate.runtime.tuning.choices import Way

#: An operator's state has at most so many parts.
MOST_SHARDS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest relevant data, in bytes, that the driver and each task of a shard evaluate. With 0 a place is not
    used.

    The defaults are measured: `python benchmarks/places.py`.
    """

    driver_bytes: int = DRIVER_BYTES
    shard_bytes: int = SHARD_BYTES

    def ways(self, query: QueryPlan, size: int, parallelism: int) -> tuple[Way, ...]:
        """The ways to evaluate an increment over `size` bytes, where this many tasks run at once; the first is for what
        is small.

        Of an operator that reads events in order, `size` has its state too. DataFrames are no place for it.
        """
        ways = []
        if self.driver_bytes and size <= self.driver_bytes:
            ways.append(Way("driver"))
        is_ordered = query.ordered is not None
        if query.shard_key is not None and self.shard_bytes:
            most = MOST_SHARDS if is_ordered else parallelism
            tasks = max(parallelism, min(-(-size // self.shard_bytes), MOST_SHARDS)) if is_ordered else parallelism
            if is_ordered or size <= self.shard_bytes * most:
                ways.append(Way("sharded", tasks, parallelism))
        return tuple(ways) or (Way("driver" if is_ordered else "catalyst"),)

    def describe(self, query: QueryPlan) -> str:
        """The limits, in words."""
        if query.ordered is not None and (query.shard_key is None or not self.shard_bytes):
            return "in the driver"
        places = [f"in the driver up to {size_text(self.driver_bytes)}"] if self.driver_bytes else []
        if query.shard_key is not None and self.shard_bytes:
            keys = ", ".join(dict.fromkeys(key for key in query.shard_key if key is not None))
            places.append(f"by shards of {keys} up to {size_text(self.shard_bytes)} a task")
        if query.ordered is not None:
            return ", ".join([*places[:-1], places[-1].partition(" up to ")[0]])
        return ", ".join([*places, "else as DataFrames"]) if places else "as DataFrames"


def limits_of(driver_bytes: int | None, shard_bytes: int | None) -> Limits:
    """The limits of a run, checked. None stands for the default."""
    driver = DRIVER_BYTES if driver_bytes is None else driver_bytes
    shard = SHARD_BYTES if shard_bytes is None else shard_bytes
    check_bytes("driver_bytes", driver)
    check_bytes("shard_bytes", shard)
    return Limits(driver, shard)


def size_text(size: int) -> str:
    """A size as text: 64 MiB, 1.5 GiB, 300 bytes."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} bytes"
