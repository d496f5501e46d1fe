"""Interval sequences of streams that tell when an interval begins: whatever the batching, the disorder that progress
permits and what frees rows, their results are those that are meant.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from unittest.mock import patch

from tests.properties.drive import Broken, Tally, as_tuples
from tests.properties.engines import little_work
from tests.strategies.programs import Case, Row
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.time import INF
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.batch import garbage
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.state.store.memory import MemoryStore

#: What comes of an interval: when it is due, and the row.
_Event = tuple[int, Mapping[str, object]]


def check_begun(case: Case, facts: ProgramFacts, tally: Tally) -> None:
    """Runs a case of `random_interval_sequence_case(begins=True)` once, with any garbage collection."""
    rng = random.Random(f"begun {case.seed}")
    (query,) = case.program.queries
    meant = sorted(evaluate(query.node, as_tuples(case)))
    collect: GarbageCollection = rng.choice(("amortised", "exact", "exact", "off"))
    purging: PurgeMode = rng.choice(("planned", "always", "always", "off"))
    options, store = RunOptions(collect_garbage=collect, purging=purging), MemoryStore()
    with (
        little_work(rng, looks=collect == "amortised"),
        patch.object(garbage, "LEAST_BEGUN", rng.choice((0, 3, garbage.LEAST_BEGUN))),
    ):
        session = Session(facts, store, options=options)
        for batch, reached in _batches(_events(case.rows["E"]), rng):
            if batch:
                session.push("E", batch)
            if reached is not None:
                session.advance("E", {"z": reached})
            report = session.step()
            tally.freed += sum(report.freed.values())
            _check(session, meant, f"up to {reached}, {collect}, {purging}")
            if report.counts and report.counts["E"].rejected:
                raise Broken(f"rejected: {report.counts['E'].rejected}")
            if rng.random() < 0.15:
                session.close()
                session = Session(facts, store, options=options)
        if collect != "off" and any(session.live_rows().values()):
            raise Broken(f"stored after the end of all input: {session.live_rows()}")
        session.close()
    tally.runs += 1
    tally.results += len(meant)


def _check(session: Session, meant: Sequence[tuple[object, ...]], where: str) -> None:
    reached = session.progress["R"]["detected"]
    wanted = [row for row in meant if int(str(row[-1])) <= reached]
    found = sorted(tuple(row.values()) for row in session.results("R"))
    if found != wanted:
        raise Broken(f"{where}: found {found}, meant {wanted}")


def _events(rows: Sequence[Row]) -> list[_Event]:
    begun = [(int(str(row["a"])), {**row, "z": None}) for row in rows]
    return [*begun, *((int(str(row["z"])), dict(row)) for row in rows)]


def _batches(events: list[_Event], rng: random.Random) -> list[tuple[list[Mapping[str, object]], float | None]]:
    """Events roughly in order, in batches, each with the progress that holds after it; the last one ends the stream."""
    spread = rng.choice((0, 0, 2, 6))
    waiting = sorted(events, key=lambda event: event[0] + rng.uniform(0, spread))
    steps: list[tuple[list[Mapping[str, object]], float | None]] = []
    known = -INF
    while waiting:
        size = rng.choice((1, 1, 2, 5))
        batch, waiting = waiting[:size], waiting[size:]
        least = min((at for at, _ in waiting), default=None)
        reached = None if least is None or rng.random() < 0.2 else least - 1 - rng.choice((0, 0, 0, 2))
        known = known if reached is None else max(known, reached)
        steps.append(([row for _, row in batch], reached if reached == known else None))
    return [*steps, ([], INF)]
