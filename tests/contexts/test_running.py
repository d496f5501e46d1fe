"""Contexts while a program runs: in any batches and order, from checkpoints, on Spark, and what is kept and said."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.contexts.traffic import NAMES, REPORTS, STOPPED, drawn, program, traffic
from tests.contexts.transactions import EVERYWHERE, changes, model_of
from tests.runtime.batchings import whatever_is_ahead
from tidegate import testing
from tidegate.algebra.nodes import Row
from tidegate.algebra.semantics import evaluate, evaluate_program
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.ordered.transitions.partition import PartitionContexts
from tidegate.runtime.plan import placement
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = {"Minutes": 1, "Stopped": 1, "Reports": 2}


def meant(rows: Mapping[str, Sequence[Row]], of: tg.Program | None = None) -> dict[str, list[Row]]:
    definition = (of or program()).definition
    given = {name: list(own) for name, own in rows.items()}
    known = {**given, **evaluate_program(definition, given)}
    return {query.stream: sorted(evaluate(query.node, known), key=str) for query in definition.queries}


def found(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    return sorted((tuple(row.values()) for row in rows), key=str)


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """Any stream may be ahead, in disorder that progress permits, with starts from the checkpoint in between."""
    rng, rows = random.Random(seed), drawn(seed)
    results = whatever_is_ahead(program, rows, rng, tmp_path, {}, sessions=3, steps=5, instants=TIMES)
    wanted = meant(rows)
    assert all(len(wanted[name]) > 2 for name in NAMES)
    for name in NAMES:
        assert found(results[name]) == wanted[name], name


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, pytest.param(1, marks=pytest.mark.long)])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    rows = drawn(5)
    with testing.drive(
        program(), spark=spark, driver_bytes=0 if shard_bytes else 1 << 20, shard_bytes=shard_bytes
    ) as run:
        for until in (40, 100):
            for name, at in TIMES.items():
                run.add(name, [row for row in rows[name] if until - 60 < row[at] <= until])  # type: ignore[operator]
                run.advance(name, **{"end" if name == "Minutes" else "time": until})
            run.step()
        run.finish()
        run.step()
        wanted = meant(rows)
        for name in NAMES:
            assert found(run.results(name)) == wanted[name], name
        if shard_bytes:
            assert {place for report in run.reports for place in report.places.values()} >= {"sharded"}


def test_many_partitions_are_written_as_deltas(tmp_path: Path) -> None:
    """And read again: what the last batch has changed counts, and a partition that never left the default has none."""
    told, many = program(), SMALL + 100
    with told.session(checkpoint=tmp_path) as session:
        session.push("Minutes", [(place, 1, 60, 30.0) for place in range(many)] + [(many + 5, 1, 10, 60.0)])
        session.advance("Minutes", 2)
        session.finish("Stopped")
        session.step()
        assert session.live_rows()["Traffic: contexts that hold"] == many
    with told.session(checkpoint=tmp_path) as session:
        session.push("Minutes", [(3, 5, 10, 60.0), (4, 6, 60, 30.0)])
        session.advance("Minutes", 7)
        session.step()
        assert session.live_rows()["Traffic: contexts that hold"] == many
    with told.session(checkpoint=tmp_path) as session:
        session.push("Reports", [(1, 3, 5, ""), (1, 3, 6, ""), (2, 4, 7, "")])
        session.finish()
        session.step()
        assert found(session.results("Toll")) == [(1, 3, 5, "", 1, 30.0), (2, 4, 7, "", 1, 30.0)]
        assert found(session.results("Free")) == [(1, 6)]
        assert found(session.results("Congested")) == [(3, 5, 1, 30.0)]


def chained() -> tg.Program:
    """A result of one context that queries in others read, at other instants, and of another model."""
    model = traffic()
    accident = STOPPED.where(~STOPPED.cleared)
    places = tg.context_model("Places", by=(), default="none", contexts="anywhere")
    places = places.initiate("anywhere", when=accident).terminate("anywhere", when=STOPPED.where(STOPPED.cleared))
    congested = tg.result_of("InCongestion", REPORTS.in_context(model, "congestion"))
    tens = congested.group_by("segment", end=tg.ceil(congested.time, 10)).agg(cars=tg.count())
    first, last = congested.as_("first"), REPORTS.as_("last")
    pairs = first.join(last, first.segment == last.segment, first.time < last.time, last.time <= first.time + 5)
    return tg.program(
        Ended=tens.in_context(model, "accident", at="end"),
        Cleared=tens.not_in_context(model, "congestion", at="end"),
        Later=pairs.in_context(model, "accident", by="last.segment", at="last.time").select("first.time", "last.time"),
        Anywhere=congested.in_context(places, "anywhere", by=()),
    )


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_results_of_a_context_lie_in_the_next_one_at_an_instant_of_their_own(seed: int, tmp_path: Path) -> None:
    """However rows come, and as the optimiser makes it."""
    rng, rows = random.Random(seed), drawn(seed, 150)
    results = whatever_is_ahead(chained, rows, rng, tmp_path, {}, sessions=2, steps=5, instants=TIMES)
    wanted = meant(rows, chained())
    for name in ("InCongestion", "Ended", "Cleared", "Later", "Anywhere"):
        assert wanted[name], name
        assert found(results[name]) == wanted[name], name


def test_a_result_of_a_context_is_not_asked_whether_that_still_holds() -> None:
    """Cars in a congestion that is over as they are counted; the accident began after them."""
    rows = {
        "Minutes": [(1, 10, 60, 30.0), (1, 15, 10, 60.0)],
        "Stopped": [(1, 16, 7, False)],
        "Reports": [(4, 1, 12, ""), (5, 1, 15, ""), (6, 1, 16, "")],
    }
    held = chained().run(rows)
    assert [row["car"] for row in held.rows("InCongestion")] == [4, 5]
    assert [tuple(row.values()) for row in held.rows("Ended")] == [(1, 20, 2)]
    assert [tuple(row.values()) for row in held.rows("Cleared")] == [(1, 20, 2)]


def test_a_row_in_a_context_does_not_wait_for_its_end() -> None:
    with program().session() as session:
        session.push("Minutes", [(1, 10, 60, 30.0)])
        session.push("Reports", [(1, 1, 10, ""), (2, 1, 11, ""), (3, 1, 15, "")])
        for name in TIMES:
            session.advance(name, 12)
        session.step()
        assert found(session.results("Toll")) == [(2, 1, 11, "", 10, 30.0)]
        assert found(session.results("Free")) == [(1, 10)]


def test_it_is_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "0: switch congestion in clear; 1: switch clear in congestion" in told
    assert "accident by causes (set)" in told
    assert "× 2, and one for each cause that holds accident" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("Minutes", [(1, 10, 60, 30.0)])
        session.push("Stopped", [(1, 10, 7, False), (2, 11, 7, False), (2, 11, 8, False)])
        for name in ("Minutes", "Stopped"):
            session.advance(name, 12)
        session.step()
    listed = str(list_state(LocalStore(tmp_path)))
    assert "4 windows of contexts that hold" in listed
    assert traffic().changes.schema.names == ("segment", "context", "change", "time", "began", "speed")


def test_values_of_windows_may_have_any_name() -> None:
    """Also that of a column that the operator has of its own."""
    levels = tg.stream("Levels", "k bigint, t bigint, partition string, at bigint", progress="t")
    model = tg.context_model("Level", by="k", default="low", contexts="high")
    kept = {"partition": levels.partition, "at": levels.at}
    model = model.initiate("high", when=levels, values=kept)
    begun = tg.program(Begun=model.starts("high")).run({"Levels": [(7, 1, "north", 5), (8, 2, "south", 6)]})
    assert found(begun.rows("Begun")) == [(7, 1, "north", 5), (8, 2, "south", 6)]


LEVELS = tg.stream("Levels", "k bigint, t bigint, level bigint, place string", progress="t")


def levelled() -> tg.ContextModel:
    """High from 10 on, full from 20 on in a high one, and blocked by causes."""
    model = tg.context_model(
        "Level", by="k", default="low", contexts=("high", "full", "blocked"), causes={"blocked": "bag"}
    )
    at = LEVELS.level
    model = model.initiate("high", when=LEVELS.where(at >= 10), values={"place": LEVELS.place})
    model = model.terminate("high", when=LEVELS.where(at < 10))
    model = model.initiate("full", when=LEVELS.where(at >= 20), within="high")
    model = model.switch("high", when=LEVELS.where(at == 15), within="full", values={"place": LEVELS.place})
    model = model.initiate("blocked", when=LEVELS.where(at == 30), cause=LEVELS.place)
    model = model.terminate("blocked", when=LEVELS.where(at == 31), cause=LEVELS.place)
    return model.switch("low", when=LEVELS.where(at == 40), within=("high", "full"))


def test_candidates_that_change_nothing_are_not_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    transact = PartitionContexts.transact

    def noted(contexts: PartitionContexts, at: int, rows: Any) -> Any:
        seen.append((at, len(rows)))
        return transact(contexts, at, rows)

    monkeypatch.setattr(PartitionContexts, "transact", noted)
    changes = levelled().changes
    with tg.program(Seen=changes.where(changes.time > -1)).session() as session:

        def step(until: int, *rows: tuple[int, int, int]) -> list[tuple[int, int]]:
            seen.clear()
            session.push("Levels", [(k, t, level, "") for k, t, level in rows])
            session.advance("Levels", until)
            session.step()
            return sorted(seen)

        # Of a partition where low holds: what ends the others, and what begins full in a high one.
        assert step(9, (1, 1, 5), (2, 2, 5), (2, 3, 12), (2, 4, 13)) == [(3, 1), (4, 1)]
        assert step(99, *((2, 10 + n, 11) for n in range(80)), (1, 20, 5), (3, 20, 0)) == []
        # From the first instant on at which something may change, and all of that.
        assert step(199, (2, 110, 12), (2, 120, 12), (2, 120, 5), (2, 130, 5)) == [(120, 2), (130, 1)]
        assert step(299, (1, 210, 30), (1, 220, 30)) == [(210, 3), (220, 3)]
        # A cause more counts, though all that it asks for holds.
        assert step(399, (1, 310, 30)) == [(310, 3)]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_candidates_change_nothing(seed: int, tmp_path: Path) -> None:
    """Runs of like candidates, several at an instant, against the definition; with starts from the checkpoint."""
    rng = random.Random(f"in vain {seed}")
    rows: list[Row] = []
    for k in range(6):
        at = 0
        while at < 120:
            level = rng.choice((5, 5, 12, 12, 15, 20, 25, 30, 31, 40))
            for _ in range(rng.choice((1, 4, 12))):
                rows.append((k, at, level, rng.choice(("x", "y"))))
                at += rng.choice((0, 1, 1, 2))
    changes = levelled().changes
    program = tg.program(Seen=changes.where(changes.time > -1))
    wanted = evaluate_program(program.definition, {"Levels": [*rows]})["Seen"]
    told: list[Row] = []
    for after, until in pairwise((-1, 0, 20, 21, 60, 90, 200)):
        with program.session(checkpoint=tmp_path) as session:
            own = [row for row in rows if after < row[1] <= until]  # type: ignore[operator]  # instants
            session.push("Levels", rng.sample(own, len(own)))
            session.advance("Levels", until)
            session.step()
            told = found(session.results("Seen"))
    assert told == sorted(wanted, key=str)
    assert {row[1] for row in told} == {"low", "high", "full", "blocked"}


@pytest.mark.parametrize("seed", range(3))
def test_transitions_as_they_run_are_what_they_mean(seed: int, tmp_path: Path) -> None:
    """Every kind of them, with causes and matches that begin earlier, with starts from the checkpoint in between."""
    rng = random.Random(seed)
    model = model_of(EVERYWHERE, {"a": "bag", "b": "set"})
    rows: list[Row] = []
    for _ in range(150):
        at = rng.randrange(1, 50)
        rows.append((at, rng.choice([*EVERYWHERE]), rng.choice(("x", "y", None)), at - rng.choice((0, 0, 1, 3))))
    program = tg.program(Seen=model.changes.where(model.changes.time > -1))
    told: list[str] = []
    for after, until in pairwise((0, 10, 11, 30, 60)):
        with program.session(checkpoint=tmp_path) as session:
            session.push("Asked", [row for row in rows if after < row[0] <= until])  # type: ignore[operator]  # instants
            session.advance("Asked", until)
            session.step()
            told = [
                f"{row['time']} {row['change']} {row['context']}"
                + (f" since {row['began']}" if row["change"] == "end" else "")
                for row in session.results("Seen")
            ]
    assert sorted(told) == sorted(changes(rows, model))
