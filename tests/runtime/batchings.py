"""Programs run in batches as they may come."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tidegate import testing
from tidegate.runtime.plan import placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Mapping[str, list[dict[str, Any]]]


def in_any_batches(
    program: Callable[[], tg.Program],
    rows: Sequence[tuple[Any, ...]],
    seed: int,
    checkpoint: Path,
    completed_by: Mapping[str, str],
) -> Rows:
    """The results over rows of S, whose second attribute is the instant, in which they are given: in disorder that
    progress permits, and with starts from the checkpoint in between.

    Each result that is named has rows up to its progress alone, and nothing is kept in the end.
    """
    rng, waiting = random.Random(seed), list(rows)
    sessions = rng.choice((1, 3))
    results: Rows = {}
    for number in range(sessions):
        with program().session(checkpoint=checkpoint, collect_garbage="exact", threads=rng.choice((1, 2))) as session:
            last = number == sessions - 1
            while len(waiting) > (0 if last else len(rows) * (sessions - 1 - number) // sessions):
                batch = waiting[: rng.choice((0, 1, 5, 20))]
                del waiting[: len(batch)]
                session.push("S", rng.sample(batch, len(batch)))
                session.advance("S", min((row[1] for row in waiting), default=200) - 1)
                session.step()
                _require_reached(session, completed_by)
            if last:
                results = _at_the_end(session, program())
    return results


def whatever_is_ahead(
    program: Callable[[], tg.Program],
    rows: Mapping[str, Sequence[tuple[Any, ...]]],
    rng: random.Random,
    checkpoint: Path,
    completed_by: Mapping[str, str],
    *,
    sessions: int,
    steps: int,
    instants: Mapping[str, int] | None = None,
) -> Rows:
    """The results over rows of several streams, of which any may be ahead: in disorder that progress permits, with so
    many sessions, each of which starts from the checkpoint and has at least so many steps.

    `instants`: the places of the streams' instants among their attributes; the second, where none are named. Each
    result that is named has rows up to its progress alone, and nothing is kept in the end.
    """
    at = dict.fromkeys(rows, 1) if instants is None else instants
    waiting = {name: sorted(own, key=itemgetter(at[name])) for name, own in rows.items()}
    results: Rows = {}
    for number in range(sessions):
        with program().session(checkpoint=checkpoint, collect_garbage="exact", threads=rng.choice((1, 2))) as session:
            for _ in range(steps):
                for name, own in waiting.items():
                    batch = own[: rng.choice((0, 1, 5, 10))]
                    del own[: len(batch)]
                    session.push(name, rng.sample(batch, len(batch)))
                    if rng.random() < 0.7:
                        session.advance(name, min((row[at[name]] for row in own), default=200) - 1)
                session.step()
                _require_reached(session, completed_by)
            if number == sessions - 1:
                for name, own in waiting.items():
                    session.push(name, own)
                results = _at_the_end(session, program())
    return results


def _require_reached(session: tg.Session, completed_by: Mapping[str, str]) -> None:
    for name, attribute in completed_by.items():
        reached = session.progress[name][attribute]
        assert all(row[attribute] <= reached for row in session.results(name))


def _at_the_end(session: tg.Session, program: tg.Program) -> Rows:
    """The results once there are no more rows."""
    session.finish()
    session.step()
    assert not any(session.live_rows().values())
    return {query.stream: session.results(query.stream) for query in program.definition.queries if not query.inner}


def on_spark(
    program: Callable[[], tg.Program],
    rows: Sequence[tuple[Any, ...]],
    size: int,
    shard_bytes: int,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Rows:
    """The results on Spark over rows of S in order of `t`, their second attribute, in batches of `size` rows.

    They are computed in the driver where `shard_bytes` is 0, else shard by shard in the workers.
    """
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    with testing.drive(
        program(), spark=spark, driver_bytes=0 if shard_bytes else 1 << 20, shard_bytes=shard_bytes
    ) as run:
        for first in range(0, len(rows), size):
            batch = rows[first : first + size]
            run.add("S", batch)
            run.advance("S", t=batch[-1][1] - 1)
            run.step()
        run.finish()
        run.step()
        places = {place for report in run.reports for place in report.places.values()}
        assert ("sharded" in places) == (shard_bytes > 0), places
        return {query.stream: run.results(query.stream) for query in program().definition.queries}
