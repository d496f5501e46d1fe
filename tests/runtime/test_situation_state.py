"""What patterns hold against the derived bound, and the order in which results of situations come."""

from __future__ import annotations

import random

import polars as pl
import pytest

import tidegate as tg
from tests.strategies.situations import random_situation_case
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.match.counted import CountedMatches
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import INF
from tidegate.analysis.ordered.match.bounds import situation_bounds
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.state.store.memory import MemoryStore

readings = tg.stream("R", "k bigint, t bigint, x bigint, n bigint", progress="t")
found = readings.partition_by("k").derive(
    A=tg.situation(readings.x > 4), B=tg.situation(readings.x < 2, at_least=2), C=tg.situation(readings.x == 3)
)


def held(run: Session) -> dict[tuple[str, int], int]:
    """Situations that are over, per pattern and definition: the most of any partition."""
    executor = run._runner.executor
    assert isinstance(executor, EmbeddedExecutor)
    operators = executor.operators.known
    most: dict[tuple[str, int], int] = {}
    for name, known in operators.items():
        operator = known.operator
        if isinstance(operator, MatchOperator) and (kept := operator.tables().get("situations")) is not None:
            closed = pl.DataFrame(kept).filter(~pl.col("open"))
            keys = [column for column in closed.columns if column.startswith("key ")]
            sizes = closed.group_by("definition", *keys).agg(pl.len().alias("size"))
            for definition, *_, size in sizes.select("definition", *keys, "size").iter_rows():
                most[name, definition] = max(size, most.get((name, definition), 0))
    return most


@pytest.mark.parametrize(("within", "expected"), [(3, [1, 1]), (7, [3, 2]), (8, [4, 2])])
def test_the_bound_of_a_window_is_attained(within: int, expected: list[int]) -> None:
    program = tg.program(M=tg.match(found.A.before(found.B), within=within))
    node = program.explain().lowered().queries[0].ordered.node  # type: ignore[union-attr]  # a pattern it is
    assert isinstance(node, Match)
    assert [bound.most for bound in situation_bounds(node)] == expected
    most: dict[tuple[str, int], int] = {}
    with program.session(purging="off") as run:
        for t in range(40):
            # As short as they may be, as close as they may be: first those of A, then those of B.
            x = (9, 3)[t % 2] if t < 20 else (0, 0, 3)[t % 3]
            run.push("R", [(1, t, x, t)])
            run.advance("R", {"t": t})
            run.step()
            for key, size in held(run).items():
                most[key] = max(size, most.get(key, 0))
    assert [most.get(("M", place), 0) for place in range(2)] == expected


def test_explain_says_it() -> None:
    plan = str(tg.program(M=tg.match(found.A.before(found.B), found.B.ts - found.A.te <= 5)).explain().plan)
    assert "of a partition at most 3 A that ended within 6 and are over, and one that is open" in plan
    assert "of a partition one B that is open" in plan


def test_explain_counts_no_microseconds() -> None:
    stream = tg.stream("R", "k bigint, t timestamp, x bigint", progress="t")
    short = stream.partition_by("k").derive(A=tg.situation(stream.x > 5, at_least="1s"), B=tg.situation(stream.x < 2))
    plan = str(tg.program(M=short.match(short.A.overlaps(short.B), within="1h")).explain().plan)
    assert "of a partition at most 3,599 A that began within 1h and are over, and one that is open" in plan
    assert "of a partition all B that began within 1h and are over, and one that is open" in plan


def test_no_pattern_holds_more_and_results_come_in_order() -> None:
    checked = sum(map(_keeps_its_bounds, range(40)))
    assert checked > 8


def _keeps_its_bounds(seed: int) -> bool:
    case = random_situation_case(seed)
    try:
        facts = analyse(case.program)
    except QueryError:
        return False
    rng = random.Random(f"state {seed}")
    events: list[tuple[int, str, tuple[object, ...]]] = []
    for stream in case.streams:
        for row in case.rows[stream.name] if "t" in stream.schema else ():
            when = row["t"]
            assert isinstance(when, int)
            events.append((when, stream.name, tuple(row.values())))
    events.sort(key=lambda event: event[0])
    with Session(facts, MemoryStore()) as run:
        ordered = {query.name: query.ordered for query in run._plan.queries if query.ordered is not None}
        bounds = {
            (name, place): bound.most
            for name, one in ordered.items()
            for node in [one.node.match if isinstance(one.node, CountedMatches) else one.node]
            if isinstance(node, Match)
            for place, bound in enumerate(situation_bounds(node))
        }
        seen: dict[str, int] = {}
        reached: dict[str, float] = {}
        for stream in case.streams:
            if "t" not in stream.schema:
                run.push(stream.name, [tuple(row.values()) for row in case.rows[stream.name]])
                run.finish(stream.name)
        for number, (time, name, event) in enumerate(events):
            run.push(name, [event])
            if rng.random() < 0.5 or number == len(events) - 1:
                for stream in case.streams:
                    if "t" in stream.schema:
                        run.advance(stream.name, {"t": time - 1 if number < len(events) - 1 else INF})
                run.step()
                for key, size in held(run).items():
                    assert size <= bounds[key], (seed, key)
                for query, one in ordered.items():
                    stream_name = next(q.stream for q in run._plan.queries if q.name == query)
                    if stream_name.startswith(query) and "~" not in query:
                        new = run.table(stream_name).arrow().to_pylist()[seen.get(query, 0) :]
                        seen[query] = seen.get(query, 0) + len(new)
                        progress = run.progress[query][one.time]
                        assert all(reached.get(query, -INF) < r[one.time] <= progress for r in new), (seed, query)
                        reached[query] = progress
    return bool(bounds)


def test_ties_that_nothing_orders() -> None:
    same = [(1, 3, 9, 1), (1, 3, 0, 1), (2, 3, 9, 1)]
    tied = readings.partition_by("k", tie="n").derive(H=tg.situation(readings.x > 4))
    with pytest.raises(EvaluationError, match="TG304 two events of one partition at 3"):
        tg.program(H=tied.H).run({"R": tg.source(same, ties="fail")})
    with pytest.raises(EvaluationError, match="TG304"):
        tg.program(H=tied.H).run({"R": tg.source([(1, 3, 9, None), (1, 3, 0, None)], ties="fail")})
    with pytest.raises(EvaluationError, match="TG304"):  # also where both say the same
        tg.program(A=found.A).run({"R": tg.source([(1, 3, 9, 1), (1, 3, 9, 2)], ties="fail")})
    assert tg.program(A=found.A).run({"R": [(1, 3, 9, 1), (2, 3, 9, 1), (None, 3, 9, 1)]}).rows("A") == []
    assert isinstance(tied.H._periods, Derive)
