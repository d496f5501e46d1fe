"""Events of one partition and instant that nothing orders: one of equal ones stays, others are set aside, whatever the
batching.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import tidegate as tg
from tests.properties.families import seeds
from tests.runtime.conftest import EITHER, Start
from tidegate.algebra.nodes import Node, children
from tidegate.algebra.ordered.derive import Derive, untied
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.semantics import Row, bags_equal, evaluate

R = tg.stream("R", "k bigint, t bigint, z bigint, x double, y bigint", progress="t")


def derived(kind: str) -> tg.Derived:
    match kind:
        case "event runs":  # only conditions matter
            return R.partition_by("k").derive(A=tg.situation(R.x > 1), B=tg.situation(R.x < 1))
        case "events":
            total = tg.sum(R.y)
            return R.partition_by("k").derive(A=tg.situation(R.x > 1, s=total), B=tg.situation(R.x < 1, n=tg.count()))
        case _:
            return R.partition_by("k", tie="z").derive(
                A=tg.situation(R.x > 1, f=tg.first(R.y, by=R.t)), B=tg.situation(R.x < 1)
            )


def program(kind: str) -> tg.Program:
    one = derived(kind)
    return tg.program(A=one.A, M=one.match(one.A.meets(one.B), within=20))


def expected(made: tg.Program, rows: list[Row]) -> dict[str, list[Row]]:
    """By the reference, over the events without the ties of each query."""
    found = {}
    for query in made.definition.queries:
        nodes = list(derivations(query.node))
        found[query.name] = evaluate(query.node, {"R": untied(nodes, rows)})
    return found


def derivations(node: Node) -> Iterator[Derive]:
    if isinstance(node, Match):
        yield from (one for one in node.situations if isinstance(one, Derive))
    if isinstance(node, Derive):
        yield node
    for child in children(node):
        yield from derivations(child)


def random_rows(rng: random.Random) -> list[Row]:
    def row(t: int) -> Row:
        return (
            rng.choice((1, 1, 2, None)),
            t,
            rng.choice((0, 1, None)),
            rng.choice((0.0, -0.0, 1.0, 2.0, 3.0)),
            rng.choice((1, 2)),
        )

    rows = [row(rng.randint(0, 12)) for _ in range(rng.choice((6, 15, 30)))]
    rows += [rng.choice(rows) for _ in range(3)]
    return rows


@pytest.mark.parametrize("kind", ["event runs", "events", "tie"])
def test_ties_are_set_aside_as_the_reference_says_whatever_the_batching(kind: str) -> None:
    made, met = program(kind), Counter[str]()
    for seed in seeds(16):
        rng = random.Random(f"{kind} {seed}")
        rows = random_rows(rng)
        wanted = expected(made, rows)
        told = []
        for end in (rng.choice((2, 3, 5)), 13):
            with made.session(sources={"R": tg.source(None, delay=rng.choice((0, 2)))}) as session:
                aside: Counter[Any] = Counter()
                for start in range(0, 13, end):
                    part = [row for row in rows if start <= int(row[1] or 0) < start + end]
                    session.push("R", rng.sample(part, len(part)))
                    aside.update(counted(session.step()))
                session.finish()
                aside.update(counted(session.step()))
                assert aside == Counter((row["source"], row["reason"]) for row in session.quarantine_rows())
                assert session.counts["R"].accepted == len(rows)
                for name in ("A", "M"):
                    assert bags_equal([tuple(row.values()) for row in session.results(name)], wanted[name]), (seed, end)
                told.append(aside)
        assert told[0] == told[1], seed
        met["ties"] += bool(told[0])
        met["results"] += any(wanted.values())
    assert min(met["ties"], met["results"]) > 5, met


def counted(report: Any) -> Counter[Any]:
    return Counter({(q, reason): n for q, reasons in report.set_aside.items() for reason, n in reasons.items()})


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_a_duplicate_of_a_source_that_delivers_at_least_once_changes_nothing(start: Start) -> None:
    made = tg.program(A=derived("events").A)
    rows = [
        (1, 1, None, 2.0, 5),
        (1, 1, None, 2.0, 5),
        (1, 2, None, 2.0, 6),
        (1, 3, None, 0.0, 1),
        (1, 3, None, 2.0, 1),
    ]
    with start(made, sources={"R": tg.source(None)}) as run:
        run.add("R", rows[:1])
        run.step()
        run.add("R", [*rows[1:], (1, 4, None, 0.0, 1)])
        run.finish()
        run.step()
        run.expect(A=[{"k": 1, "ts": 1, "te": 4, "s": 11}])
        aside = [row for row in run.quarantine() if row["reason"] == "tie"]
        assert {row["error"] for row in aside} == {
            "TG304 two events of one partition at 1: nothing says which comes first",
            "TG304 two events of one partition at 3: nothing says which comes first",
        }


def test_a_source_whose_ties_are_to_fail_does() -> None:
    with pytest.raises(tg.QueryError, match="TG304"):
        program("events").run({"R": tg.source([(1, 1, None, 2.0, 5), (1, 1, None, 2.0, 5)], ties="fail")})
    with pytest.raises(tg.QueryError, match="TG401 there is no ties='never'"):
        program("events").run({"R": tg.source([], ties="never")})  # type: ignore[arg-type]


@pytest.mark.parametrize("failing", [("R",), ("S",), ("R", "S"), ()])
def test_a_pattern_over_two_sources_sets_ties_aside_where_both_do(failing: tuple[str, ...]) -> None:
    other = tg.stream("S", "k bigint, t bigint, x double, n bigint", progress="t")
    one = R.partition_by("k").derive(A=tg.situation(R.x > 1, s=tg.sum(R.y)))
    two = other.partition_by("k").derive(B=tg.situation(other.x > 1, n=tg.sum(other.n)))
    made = tg.program(M=tg.match(one.A.before(two.B), within=50))
    first = [(1, 1, None, 2.0, 5), (1, 3, None, 0.0, 5)]
    second = [(1, 5, 2.0, 1), (1, 5, 2.0, 2), (1, 6, 2.0, 1), (1, 7, 0.0, 1)]
    given = {"R": first, "S": second}
    sources = {
        name: tg.source(rows, ties="fail") if name in failing else tg.source(rows) for name, rows in given.items()
    }
    if failing:
        with pytest.raises(tg.QueryError, match="TG304"):
            made.run(sources)
    else:
        assert len(made.run(sources).rows("M")) == 1


@pytest.mark.parametrize("pattern", [False, True])
def test_a_sum_of_a_situation_that_does_not_fit_is_null_and_told(pattern: bool) -> None:
    one = R.partition_by("k").derive(A=tg.situation(R.x > 1, s=tg.sum(R.y)), B=tg.situation(R.x < 1))
    made = tg.program(Q=one.match(one.A.meets(one.B), within=20) if pattern else one.A)
    large = [(1, t, None, 2.0, 1 << 62) for t in (1, 2)]
    other = [(2, t, None, 2.0, 3) for t in (1, 2)]
    ends = [(k, 3, None, 0.0, 0) for k in (1, 2)]
    with made.session(sources={"R": tg.source(None, delay=0)}) as session:
        told: Counter[Any] = Counter()
        for part in ([large[0], other[0]], [large[1], other[1]], ends, [(1, 9, None, 0.0, 0)]):
            session.push("R", part)
            told.update(counted(session.step()))
        session.finish()
        told.update(counted(session.step()))
        assert sorted((row["A.s" if pattern else "s"] for row in session.results("Q")), key=str) == [6, None]
        assert told == {("Q", "overflow"): 1}
    with made.session(on_error="fail") as session:
        session.push("R", [*large, *ends])
        session.finish()
        with pytest.raises(tg.QueryError, match="TG301 s: the sum is out of range"):
            session.step()
