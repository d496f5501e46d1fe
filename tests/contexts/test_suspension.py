"""Suspended queries: no increment, no state, and no row beyond the batch that brings it; then they run again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidegate as tg
from tests.contexts.traffic import REPORTS, traffic
from tests.runtime.spark.job_names import descriptions
from tidegate import testing
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.transitions.definition import END, START
from tidegate.algebra.ordered.transitions.grouped import HeldContexts
from tidegate.algebra.semantics import evaluate_program
from tidegate.runtime.ordered.asof import few_rows, operator
from tidegate.runtime.ordered.asof.candidates import Candidates
from tidegate.runtime.rows import Array, Rows, rows_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.runtime.engines.embedded.session import Session

MODEL = traffic()
A, B = (REPORTS.as_(name) for name in "ab")


def program() -> tg.Program:
    """A pattern in congestion, and a count of what is in any trouble."""
    pairs = A.join(B, A.segment == B.segment, A.car == B.car, A.time < B.time, B.time <= A.time + 10)
    trouble = REPORTS.in_context(MODEL, "congestion", "accident")
    return tg.program(
        Pairs=pairs.in_context(MODEL, "congestion", by="b.segment", at="b.time", since="a.time"),
        Trouble=trouble.group_by("segment", w=tg.ceil(trouble.time, 10)).agg(n=tg.count()),
    )


def step(session: Session, until: int, **rows: Sequence[Row]) -> set[str]:
    """A batch that brings everything up to an instant; gives the queries that were evaluated."""
    for name in ("Minutes", "Stopped", "Reports"):
        session.push(name, list(rows.get(name, ())))
        session.advance(name, until)
    return {*session.step().places}


def reports(first: int, last: int) -> list[Row]:
    return [(car, car % 3, time, "") for time in range(first, last + 1) for car in range(6)]


def test_what_no_context_holds_for_is_not_evaluated(tmp_path: Path) -> None:
    with program().session(checkpoint=tmp_path) as session:
        # Rows, but no transition: nothing is evaluated, and nothing is kept.
        assert step(session, 10, Reports=reports(1, 10)) == set()
        assert not any(session.live_rows().values())
        evaluated = step(session, 20, Minutes=[(1, 12, 60, 30.0)], Reports=reports(11, 20))
        assert {"Traffic", "Pairs", "Trouble"} <= evaluated
        assert session.progress["Pairs"]["b.time"] == 20
        assert len(session.results("Pairs")) == 2 * sum(8 - gap for gap in range(1, 8))
        evaluated = step(session, 30, Minutes=[(1, 25, 10, 60.0)], Reports=reports(21, 30))
        assert {"Traffic", "Pairs"} <= evaluated
        # The context has ended: from the next batch on everything is as before.
        assert {name for name in step(session, 40, Reports=reports(31, 40)) if name.startswith("Pairs~")} == set()
        assert step(session, 60, Reports=reports(41, 60)) == set()
        kept = {name: rows for name, rows in session.live_rows().items() if rows}
        assert kept == {"Traffic: contexts that hold": 1}
        assert session.progress["Pairs"]["b.time"] == 60
    with program().session(checkpoint=tmp_path) as session:
        # And after a start from the checkpoint.
        assert step(session, 70, Reports=reports(61, 70)) == set()
        assert {"Traffic", "Pairs"} <= step(session, 80, Minutes=[(2, 71, 60, 30.0)], Reports=reports(71, 80))
        assert session.results("Pairs")[-1]["b.time"] == 80
        # Nothing is kept after the end, though no row comes with it.
        assert step(session, 100) == set()
        assert session.live_rows()["Traffic: contexts that hold"] > 0
        session.finish()
        session.step()
        assert not any(session.live_rows().values())


def test_only_partitions_with_windows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Watched(Candidates):
        @classmethod
        def of_increment(cls, node, before, new, right_new, close_at):  # type: ignore[no-untyped-def]
            seen.append(new[0].height)
            return Candidates.of_increment(node, before, new, right_new, close_at)

    def where(rows: Rows, mask: Array) -> Rows:
        seen.append((found := rows_where(rows, mask)).height)
        return found

    monkeypatch.setattr(operator, "Candidates", Watched)
    monkeypatch.setattr(few_rows, "rows_where", where)
    rows = REPORTS.in_context(MODEL, "accident").select("car", "time")
    with tg.program(Q=rows).session() as session:
        step(session, 10, Stopped=[(1, 3, 7, False)], Reports=reports(1, 10))
        assert seen == [20]  # of one segment in three
        step(session, 20, Reports=reports(11, 20))
        assert seen == [20, 20]
        assert len(session.results("Q")) == 2 * 7 + 20


def test_a_join_is_not_evaluated_without_rows_on_one_side() -> None:
    left, right = (tg.stream(name, "k bigint, t bigint", progress="t") for name in ("L", "R"))
    one, other = left.as_("l"), right.as_("r")
    joined = one.join(other, one.k == other.k, one.t <= other.t, other.t <= one.t + 3)
    kept = one.anti_join(other, one.k == other.k, one.t <= other.t, other.t <= one.t + 3).unqualified()
    with tg.program(Joined=joined, Kept=kept).session() as session:
        session.push("L", [(1, 1), (2, 2)])
        for name in "LR":
            session.advance(name, 4)
        assert {*session.step().places} == {"Kept"}
        assert session.progress["Joined"] == {"l.t": 1, "r.t": 4}
        session.push("R", [(1, 5), (2, 5)])
        session.push("L", [(1, 5)])
        session.finish()
        assert "Joined" in session.step().places
        assert sorted((row["l.t"], row["r.t"]) for row in session.results("Joined")) == [(2, 5), (5, 5)]


def test_rows_that_wait_are_looked_at_as_time_goes_by() -> None:
    left, right = (tg.stream(name, "k bigint, t bigint", progress="t").as_(name.lower()) for name in ("L", "R"))
    joined = left.asof_join(right, by="k", direction="forward", within=3)
    with tg.program(Q=joined).session() as session:
        session.push("L", [(1, 1)])
        for until in (1, 10):
            assert session.results("Q") == []
            for name in "LR":
                session.advance(name, until)
            session.step()
        assert [(row["l.t"], row["r.t"]) for row in session.results("Q")] == [(1, None)]


@pytest.mark.spark
def test_spark_runs_no_job_for_a_suspended_query(spark: SparkSession) -> None:
    rows: dict[str, list[Any]] = {
        "Minutes": [(1, 45, 60, 30.0), (1, 52, 10, 60.0)],
        "Stopped": [],
        "Reports": reports(1, 60),
    }
    earlier = descriptions(spark)
    with testing.drive(program(), spark=spark, driver_bytes=0, shard_bytes=1 << 20) as run:
        evaluated: list[set[str]] = []
        for until in (20, 40, 60):
            for name, at in {"Minutes": 1, "Stopped": 1, "Reports": 2}.items():
                run.add(name, [row for row in rows[name] if until - 20 < row[at] <= until])
                run.advance(name, **{"end" if name == "Minutes" else "time": until})
            run.step()
            evaluated.append({*run.reports[-1].places})
        assert evaluated[:2] == [set(), set()]
        assert "Pairs" in evaluated[2]
        numbers = [report.seq for report in run.reports]
        run.finish()
        run.step()
        meant = evaluate_program(program().definition, rows)
        for name in ("Pairs", "Trouble"):
            assert sorted(tuple(row.values()) for row in run.results(name)) == sorted(meant[name])
    described = [text for number, text in descriptions(spark).items() if number not in earlier]
    jobs = [[text for text in described if f"batch {number}: incr" in text] for number in numbers]
    assert jobs[:2] == [[], []]
    assert any("Pairs" in text for text in jobs[2])


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_rows_without_a_context_are_not_written(tmp_path: Path) -> None:
    """Where it is known that none holds: rows of which it is not known yet wait in the checkpoint."""
    many = [(number, number % 3, 1 + number % 1_000, "") for number in range(50_000)]
    with program().session(checkpoint=tmp_path / "known") as session:
        step(session, 1_000, Reports=many)
        assert not any(session.live_rows().values())
    with program().session(checkpoint=tmp_path / "unknown") as session:
        session.push("Reports", many)
        session.advance("Reports", 1_000)
        session.step()
        assert sum(session.live_rows().values()) >= len(many)
    assert size_of(tmp_path / "known") < 50_000 < size_of(tmp_path / "unknown")


def test_grouped_windows_go_on_from_context_to_context() -> None:
    held = HeldContexts()
    assert held.after([("a", START, 3)], 3) == [(START, 3)]
    assert held.after([("b", START, 5)], 5) == []
    # a ends, b goes on: what began after 5 lies in b's window.
    assert held.after([("a", END, 3)], 7) == [(END, 3), (START, 5)]
    # Ended and begun at one instant: a new window.
    assert held.after([("b", START, 9), ("b", END, 5)], 9) == [(END, 5), (START, 9)]
    assert held.after([("b", END, 9)], 10) == [(END, 9)]
    assert held.after([("c", END, None)], 11) == []
    assert held.since is None


@pytest.mark.parametrize("seed", range(4))
def test_grouped_windows_are_those_of_their_contexts(seed: int, tmp_path: Path) -> None:
    """In any batches, with starts from the checkpoint: a row is in one of several contexts where it is in any."""
    rng = random.Random(seed)
    asked = tg.stream("Asked", "k bigint, t bigint, what string", progress="t")
    rows = tg.stream("Rows", "k bigint, first bigint, t bigint", progress="t", temporal="first",
                     relations=lambda r: [r.first <= r.t, r.t <= r.first + 20])  # fmt: skip
    model = tg.context_model("M", by="k", default="d", contexts=("a", "b", "c"))
    for context in "abc":
        model = model.initiate(context, when=asked.where(asked.what == f"+{context}"))
        model = model.terminate(context, when=asked.where(asked.what == f"-{context}"))
    alone = [rows.in_context(model, context, at="t", since="first") for context in "abc"]
    together = tg.program(
        Q=rows.in_context(model, "a", "b", "c", at="t", since="first"),
        R=rows.not_in_context(model, "a", "c", at="t"),
        Once=alone[0].union(*alone[1:]).distinct(),
    )
    given = [(rng.randrange(2), rng.randrange(50), rng.choice("+-") + rng.choice("abc")) for _ in range(40)]
    some = [(rng.randrange(3), (at := rng.randrange(50)) - rng.choice((0, 1, 4, 9)), at) for _ in range(120)]
    meant = evaluate_program(together.definition, {"Asked": given, "Rows": some})
    for until in (10, 25, 60):
        with together.session(checkpoint=tmp_path) as session:
            for name, own, place in (("Asked", given, 1), ("Rows", some, 2)):
                session.push(name, [row for row in own if until - (35 if until == 60 else 15) < row[place] <= until])  # type: ignore[operator]
                session.advance(name, {"t": until} if name == "Rows" else until)
            session.step()
            for name in ("Q", "R", "Once"):
                found = sorted(tuple(row.values()) for row in session.results(name))
                assert found == sorted(row for row in meant[name] if row[2] <= until), (name, until)  # type: ignore[operator]
    distinct = pl.DataFrame(meant["Q"], schema=["k", "first", "t"], orient="row").unique()
    assert sorted(distinct.rows()) == sorted(meant["Once"])
