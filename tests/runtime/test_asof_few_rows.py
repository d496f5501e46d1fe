"""Few rows that look back find what many do: by arrays, and by frames where something is NULL."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.shards import shards
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.ordered.asof import few_rows, operator
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.rows import Rows, SmallRows
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.store.interface import FileRef

Event = tuple[Any, ...]

L = tg.stream("L", "k string not null, t bigint, x bigint not null, at string not null", progress="t")
R = tg.stream(
    "R",
    "j string not null, u bigint, y bigint not null, what string not null, d double not null, yes boolean not null",
    progress="u",
)
#: Keys of texts, of integers, several, and none.
KEYS: Mapping[str, Any] = {"text": [("k", "j")], "integer": [("x", "y")], "two": [("k", "j"), ("x", "y")], "none": ()}


def lefts(rng: random.Random, first: int, last: int) -> list[Event]:
    times = [rng.randrange(first, last) for _ in range(rng.choice((0, 4)))]
    return [(rng.choice("abc"), t, rng.randrange(3), rng.choice(("here", "there"))) for t in times]


def rights(rng: random.Random, first: int, last: int) -> list[Event]:
    """Two at most of one instant, of which the text says which comes first."""
    named = {(rng.randrange(first, last), rng.choice(("on", "off"))) for _ in range(rng.choice((0, 0, 1, 5)))}
    return [(rng.choice("abd"), t, rng.randrange(3), what, t / 4, rng.random() < 0.5) for t, what in sorted(named)]


def meant(program: tg.Program, rows: Mapping[str, Sequence[Event]]) -> list[Event]:
    (query,) = program.definition.queries
    return sorted(evaluate(query.node, {name: list(own) for name, own in rows.items()}), key=str)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each step of few rows whether what it has found is arrays."""
    steps: list[bool] = []

    def noted(*args: Any) -> Rows:
        found = few_rows.with_rows_behind(*args)
        steps.append(isinstance(found, SmallRows))
        return found

    monkeypatch.setattr(operator, "with_rows_behind", noted)
    return steps


def run(relation: tg.Relation, batches: Sequence[tuple[list[Event], list[Event]]], span: int = 10) -> list[Event]:
    with tg.program(Q=relation).session() as session:
        for number, rows in enumerate(batches):
            for name, own in zip(("L", "R"), rows, strict=True):
                session.push(name, own)
                session.advance(name, (number + 1) * span - 1)
            session.step()
        session.finish()
        session.step()
        return sorted((tuple(row.values()) for row in session.results("Q")), key=str)


@pytest.mark.parametrize("seed", shards(12, quick=4))
@pytest.mark.parametrize("keys", KEYS)
def test_rows_are_those_of_the_meaning(keys: str, seed: int, taken: list[bool]) -> None:
    rng = random.Random(f"{keys} {seed}")
    batches = [(lefts(rng, first, first + 10), rights(rng, first, first + 10)) for first in range(0, 120, 10)]
    rows = {"L": [row for left, _ in batches for row in left], "R": [row for _, right in batches for row in right]}
    for how in ("left", "inner"):
        strict = rng.random() < 0.5
        relation = L.asof_join(R, by=KEYS[keys], tie="what", how=how, strict=strict)
        assert run(relation, batches) == meant(tg.program(Q=relation), rows), (how, strict)
    assert any(taken)
    # Of a few seeds each step has rows that are arrays, as nearly all have without keys.
    assert keys == "none" or seed > 0 or not all(taken)


def test_without_right_rows_no_state_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before stays what is kept, also for the next start."""
    written: list[int] = []
    write = Batch.write_state

    def noted(batch: Batch, operator: str, table: Any) -> FileRef:
        written.append(batch.seq)
        return write(batch, operator, table)

    monkeypatch.setattr(Batch, "write_state", noted)
    program = tg.program(Q=L.asof_join(R, by=[("k", "j")], how="inner"))
    for start in (0, 3):
        with program.session(checkpoint=tmp_path) as session:
            for at in range(start, start + 3):
                session.push("L", [("a", at, 0, "here")])
                session.push("R", [("a", at, 0, "on", 0.5, True)] if at in (0, 5) else [])
                for name in "LR":
                    session.advance(name, at)
                session.step()
            found = [(row["t"], row["u"]) for row in session.results("Q")]
    assert sorted(found) == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 5)]
    assert written == [1, 6]


@pytest.mark.parametrize("keys", [1, SMALL + 100])
def test_a_context_that_has_ended_is_no_context(keys: int, tmp_path: Path) -> None:
    """Nor is it where it ends in the batch in which it is looked up, or in one before, which another start has read."""
    model = tg.context_model("M", by="k", default="calm", contexts="hot")
    signals = tg.stream("S", "k string not null, s bigint, on boolean not null", progress="s")
    model = model.initiate("hot", when=signals.where(signals.on)).terminate("hot", when=signals.where(~signals.on))
    program = tg.program(Q=L.in_context(model, "hot", by="k", at="t").select("k", "t"))
    begun = [("a", 5, True), *((f"k{number}", 5, True) for number in range(1, keys))]
    rows = [("a", t, 0, "here") for t in (3, 5, 6, 14, 15, 16, 25, 30)]
    found = []
    for until in (9, 19, 29, 39):
        with program.session(checkpoint=tmp_path) as session:
            session.push("L", [row for row in rows if until - 10 < row[1] <= until])
            session.push("S", [row for row in (*begun, ("a", 15, False)) if until - 10 < row[1] <= until])
            for name in "LS":
                session.advance(name, until)
            session.step()
            found = sorted((row["k"], row["t"]) for row in session.results("Q"))
    assert found == [("a", 6), ("a", 14), ("a", 15)]


def test_a_version_that_is_deleted_is_none_beside_others() -> None:
    """Though one was kept before it, and another key of the same batch has one."""
    versions = R.versioned(by="j", deleted=R.what == "off")
    relation = L.temporal_join(versions, on=[("k", "j")]).select("k", "t", "u")
    earlier = [("a", 2, 0, "here")], [("a", 1, 0, "on", 0.5, True)]
    later = [(key, 12, 0, "here") for key in "abc"], [("a", 11, 0, "off", 0.5, True), ("b", 11, 0, "on", 0.5, True)]
    assert run(relation, [earlier, later]) == [("a", 12, None), ("a", 2, 1), ("b", 12, 11), ("c", 12, None)]
