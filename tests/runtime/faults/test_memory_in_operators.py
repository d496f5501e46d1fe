"""Memory that is refused at any line of what evaluates a batch, in sessions and in tasks of Spark's workers: it is said
as that, the batch can be run again, and what comes of it is as if nothing had happened.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.runtime.faults import on_files
from tests.runtime.faults.on_files import answer, difference, sinks_of, sources_of, write_files
from tests.runtime.faults.refused import REFUSALS, RefusesAtLine, told
from tests.runtime.faults.scenarios import (
    MAKERS,
    START,
    STEPS,
    Scenario,
    again,
    give,
    opened,
    outcome,
    scenario,
    undisturbed,
)
from tests.runtime.inline_workers import InlineRun, Workers
from tests.shards import cases
from tidegate.algebra.errors import TidegateError
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.spark.eval.portions import Loads
from tidegate.runtime.engines.spark.failures import read_summaries
from tidegate.runtime.engines.spark.tasks import running
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import MEMORY, StateError
from tidegate.runtime.state.store.memory import MemoryStore

#: What evaluates a batch: parts of the paths of its files.
FILES: Final = {
    "operators": "/runtime/ordered/",
    "evaluation": "/runtime/eval/",
    "steps": "/runtime/engines/embedded/steps/",
    "ingest": "/runtime/ingest/",
    "operators of users": "/tests/operators.py",
    "tasks": "/runtime/engines/spark/eval/",
    "workers": "/runtime/engines/spark/workers.py",
}
#: What each program has, however it is evaluated.
EVALUATING: Final = ("evaluation", "steps", "ingest")
#: Programs with operators that gather rows in order of time.
ORDERED: Final = (
    "event runs",
    "interval sequence",
    "operators of one's own",
    "pattern",
    "row pattern",
    "rows around rows",
    "rows nearest in time",
    "ticks",
    "versions and ranks",
    "windows of rows",
    "within contexts",
)
#: Those of them that `make test` asks.
QUICK: Final = ("operators of one's own", "row pattern", "rows around rows", "windows of rows")
#: Of those, what one share finds is found in portions by tasks of Spark's workers.
DIVIDED: Final = ("event runs", "pattern")
#: How often memory is refused in a test, and how many tests there are.
TIMES, SHARDS = 3, 16


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that nothing disturbs: how many lines of some files it executes, and the rows that are stored after
    it.
    """

    lines: int
    live: Mapping[str, int]


def copied(store: MemoryStore) -> MemoryStore:
    copy = MemoryStore(packs=True)
    copy.files, copy.published = dict(store.files), dict(store.published)
    return copy


def session_of(one: Scenario, store: MemoryStore, done: int) -> tuple[Session, list[int]]:
    """A session after so many batches; the list says how many are done, by which the clock goes."""
    batches = [done]
    return opened(one, store, lambda: START + dt.timedelta(minutes=batches[0])), batches


@cache
def stores(name: str) -> Sequence[MemoryStore]:
    """The stores of a run that nothing disturbs: at its beginning, and after each batch."""
    one, store = scenario(name), MemoryStore(packs=True)
    left = [copied(store)]
    session, done = session_of(one, store, 0)
    with session:
        for step in one.steps:
            give(session, step)
            session.step()
            done[0] += 1
            left.append(copied(store))
    return left


@cache
def batches(name: str, first: int, files: str) -> Sequence[Batch]:
    """The batches from `first` on of a session that is opened before that."""
    one, found = scenario(name), list[Batch]()
    session, done = session_of(one, copied(stores(name)[first]), first)
    with session:
        for step in one.steps[first:]:
            give(session, step)
            with RefusesAtLine(FILES[files]) as counting:
                session.step()
            done[0] += 1
            found.append(Batch(counting.lines, session.live_rows()))
    return found


def is_committed(store: MemoryStore, number: int) -> bool:
    last = inspect(store).manifest
    return last is not None and last.seq == number


def refuse(name: str, files: str, rng: random.Random) -> bool:
    """Whether memory was refused, at any line of any batch. The session goes on, and comes to the same."""
    one = scenario(name)
    first = rng.randrange(STEPS)
    wanted = batches(name, first, files)
    at = rng.choice([number for number, batch in enumerate(wanted) if batch.lines or number == len(wanted) - 1])
    refuses = RefusesAtLine(FILES[files], rng.randint(1, max(1, wanted[at].lines)), rng.choice(sorted(REFUSALS)))
    store = copied(stores(name)[first])
    session, done = session_of(one, store, first)
    found: TidegateError | None = None
    with session:
        for number, step in enumerate(one.steps[first:]):
            give(session, step)
            if number == at:
                with refuses:
                    found = told(session.step)
                assert found is None or found.code == MEMORY, refuses.place
            if not is_committed(store, first + number + 1):
                session.step()
            done[0] += 1
            assert session.live_rows() == wanted[number].live, refuses.place
    assert outcome(one, again(store)) == undisturbed(name), refuses.place
    return found is not None


@pytest.mark.parametrize(
    ("name", "shard"),
    cases(
        [(name, shard) for name in ORDERED for shard in range(SHARDS)],
        lambda name, shard: name in QUICK and shard == 0,
    ),
)
def test_any_line_of_an_operator(name: str, shard: int) -> None:
    rng = random.Random(f"{name} {shard}")
    assert sum(refuse(name, "operators", rng) for _ in range(TIMES)) >= TIMES // 2


@pytest.mark.parametrize(
    ("name", "files", "shard"),
    cases(
        [(name, files, shard) for name in sorted(MAKERS) for files in EVALUATING for shard in range(2)],
        lambda name, files, shard: (
            (name, files, shard)
            in {("left join", "evaluation", 0), ("recursion", "steps", 0), ("tumbling", "ingest", 0)}
        ),
    ),
)
def test_any_line_of_an_evaluation(name: str, files: str, shard: int) -> None:
    rng = random.Random(f"{name} {files} {shard}")
    times = 2 * TIMES if files == "ingest" else TIMES  # a batch without rows ingests nothing
    assert sum(refuse(name, files, rng) for _ in range(times)) >= TIMES // 2


def test_an_operator_of_ones_own() -> None:
    """That it was refused memory is no mistake of it."""
    rng = random.Random(1)
    assert sum(refuse("operators of one's own", "operators of users", rng) for _ in range(TIMES)) >= TIMES // 2


# --- tasks of Spark's workers -----------------------------------------------------------------------------------------


@dataclass
class Refused(Workers):
    """Workers of which one is refused memory in a task, or that count the lines of each task."""

    files: str = ""
    task: int = -1
    refuses: RefusesAtLine | None = None
    lines: list[int] = field(default_factory=list)

    def run(self, function: bytes, text: str) -> list[str]:
        counting = RefusesAtLine(self.files)
        if self.number == self.task and self.refuses is not None:
            counting = self.refuses
        with counting:
            found = super().run(function, text)
        self.lines.append(counting.lines)
        return found


def run_of(one: Scenario, workers: Workers, place: Path, files: Path) -> InlineRun:
    sources = sources_of(one, files, bounded=True)
    return InlineRun.of(workers, one.facts, sources, sinks_of(one, place), place / "state", one.statics)


@pytest.mark.parametrize(
    ("name", "files"),
    cases(
        [
            (name, files)
            for name in (*ORDERED, "interval join", "tumbling", "chain of queries")
            for files in ("operators", "evaluation", "tasks", "workers")
            if files != "operators" or name in ORDERED
        ],
        lambda name, files: (name, files) in {("rows around rows", "operators"), ("windows of rows", "tasks")},
    ),
)
def test_any_line_of_a_task(name: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, rng = scenario(name), random.Random(f"{name} {files}")
    if name in DIVIDED:
        monkeypatch.setattr(Loads, "portions", lambda self, queries, shards: {(query, 0): 2 for query in queries})
    write_files(one, tmp_path, range(4))
    counting = Refused(monkeypatch, tasks=2, choose=lambda number: number % 2, files=FILES[files])
    run_of(one, counting, tmp_path / "counted", tmp_path).all()
    wanted = on_files.undisturbed(one, tmp_path)
    assert difference(answer(one, tmp_path / "counted"), wanted) is None
    tasks = [number for number, lines in enumerate(counting.lines) if lines]
    refused = 0
    for time in range(TIMES):
        task, kind, place = rng.choice(tasks), rng.choice(sorted(REFUSALS)), tmp_path / str(time)
        refuses = RefusesAtLine(FILES[files], rng.randint(1, counting.lines[task]), kind)
        workers = Refused(monkeypatch, tasks=2, choose=lambda number: number % 2, task=task, refuses=refuses)
        run = run_of(one, workers, place, tmp_path)
        while run.run.selection.is_left(run.run.setup.directories) or not run.batches:
            found = told(run.batch)
            if found is not None:
                assert found.code == MEMORY, refuses.place
                refused += 1
        run.run.close()
        assert difference(answer(one, place), wanted) is None, refuses.place
    assert refused


def test_what_tasks_share_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first of them begins: Spark would pass on the text of the error only."""

    def refused(_: bytes) -> Any:
        raise MemoryError

    monkeypatch.setattr(running, "shared_of", refused)
    with pytest.raises(StateError) as caught:
        read_summaries(running.run_packed(b"", ["[0, null]"]))
    assert caught.value.code == MEMORY
