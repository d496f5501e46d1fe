"""Queries of many streams, conditions or situations: time that grows with their size, text that does too, or an early
refusal.

What is measured is steps, or CPU time of this process, at two sizes, so that a slow or busy machine makes no
difference.
"""

from __future__ import annotations

import cProfile
import gc
import importlib
import time
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from math import log2
from operator import and_, or_

import pytest

import tidegate as tg
from tidegate import minutes, read_query
from tidegate.algebra.errors import Problem, QueryError, Site
from tidegate.algebra.nodes import JoinKind, Node
from tidegate.algebra.rewrites import rewrite
from tidegate.analysis.ordered.match.order import MOST_EXACT, Statistics, best_order, cost_of, results
from tidegate.analysis.ordered.match.restrictions import MOST_ENDS
from tidegate.analysis.purge import MOST_PAIRED, Purge, purge
from tidegate.analysis.zones.zone import Conflict, Edge
from tidegate.runtime.program import Program

S = tg.stream("S", "t timestamp, k bigint, x bigint", progress="t")
TICKS = tg.stream("Ticks", "t bigint", progress="t")


def chain(length: int) -> Program:
    streams = [tg.stream(f"S{i}", "t timestamp, k bigint", progress="t").as_(f"s{i}") for i in range(length)]
    joined: tg.Relation = streams[0]
    for a, b in pairwise(streams):
        joined = joined.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + minutes(1))
    return tg.program(Q=joined.select(k=streams[0].k, t=streams[-1].t))


def conditions(number: int) -> str:
    some = " AND ".join(f"x > {i}" for i in range(number))
    return f"FROM S PARTITION BY k DEFINE A AS {some}, B AS x < 0 PATTERN A before B WITHIN 5 minutes"


def situations(number: int) -> str:
    some = ", ".join(f"A{i} AS x > {i}" for i in range(number))
    order = " AND ".join(f"A{i} before A{i + 1}" for i in range(number - 1))
    return f"FROM S PARTITION BY k DEFINE {some} PATTERN {order} WITHIN 5 minutes"


def read(text: str) -> tg.Relation:
    return read_query(text, {"S": S}, dialect="allen")


def seconds(action: Callable[[], object]) -> float:
    """CPU time, the best of three, without the collection of garbage: that takes as long as all tests before it have
    left objects.
    """
    found = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            action()
            found.append(time.process_time() - start)
        finally:
            gc.enable()
    return min(found)


def open_session(length: int) -> None:
    chain(length).session().close()


def calls(action: Callable[[], object]) -> int:
    """How many functions are called: the same number on every machine and beside every load."""
    profile = cProfile.Profile()
    profile.runcall(action)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.long
def test_a_session_over_a_chain_opens_in_steps_that_grow_with_it() -> None:
    """Of twice as many streams 2.4 times as many: progress of each depends on all, the rest is in proportion.

    2.9 times where the query is walked once for each stream, or trees that were made again are compared down to the
    leaves.
    """
    open_session(4)
    assert calls(lambda: open_session(180)) < 2.6 * calls(lambda: open_session(90))


def test_what_is_pruned_below_a_join_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many streams take twice the steps; four times where every join has all that is below it pruned anew."""
    steps: list[int] = []
    module = importlib.import_module("tidegate.algebra.rewrites.prune")
    shrink = module._shrink

    def counted(node: Node, needed: frozenset[str]) -> Node:
        steps[-1] += 1
        result: Node = shrink(node, needed)
        return result

    monkeypatch.setattr(module, "_shrink", counted)
    for length in (40, 80):
        (query,) = chain(length).facts.queries
        steps.append(0)
        rewrite(query.query.node)
    assert steps[0] > 40
    assert steps[1] < 2.2 * steps[0]


def test_the_explanation_of_a_chain_grows_with_it() -> None:
    """No reader has a line for each pair of streams, and no list names them all: 30 streams took 90 kB, 60 took 335
    kB.
    """
    sizes = [len(str(chain(length).explain())) for length in (60, 120)]
    assert sizes[0] < 100_000
    assert sizes[1] < 2.2 * sizes[0]


def test_two_hundred_streams_are_explained_and_opened() -> None:
    program = chain(200)
    assert program.check() == []
    assert len(str(program.explain())) < 2_000_000
    with program.session() as session:
        session.step()


def explain_references(number: int) -> None:
    """As many references to one stream, of which none has a name."""
    first, *others = (S.where(S.k == i).select(S.t, S.k) for i in range(number))
    str(tg.program(Q=first.union(*others)).explain())


def test_references_to_one_stream_are_told_apart_in_one_walk() -> None:
    few, many = (calls(partial(explain_references, number)) for number in (50, 100))
    assert many < 2.7 * few


def test_of_many_streams_only_those_that_constraints_relate_are_asked_for_partners() -> None:
    rules = purge(chain(MOST_PAIRED + 1).facts.queries[0])
    assert rules is not None
    (case,) = rules.cases
    assert [(rule.occurrence, rule.counterpart) for rule in case.partners if rule.occurrence == 3] == [(3, 2), (3, 4)]
    (case,) = purge_of(after_the_first(MOST_PAIRED + 1)).cases
    assert [(rule.occurrence, rule.counterpart) for rule in case.partners if rule.occurrence == 3] == [
        (3, 0),
        (3, 2),
        (3, 4),
    ]
    few = purge(chain(MOST_PAIRED).facts.queries[0])
    assert few is not None
    assert len(few.cases[0].partners) == MOST_PAIRED * (MOST_PAIRED - 1)


def test_of_many_intervals_those_are_asked_that_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constraints of a match are between its own attributes, and none is stated between two streams."""
    monkeypatch.setattr("tidegate.analysis.purge.MOST_PAIRED", 5)
    (case,) = purge_of(intervals_in_order(6)).cases
    assert {(rule.occurrence, rule.counterpart) for rule in case.partners if rule.occurrence == 3} >= {(3, 2), (3, 4)}
    assert len(case.partners) < 6 * 5


def test_of_as_many_intervals_as_are_one_zone_all_are_asked() -> None:
    assert MOST_PAIRED >= MOST_ENDS // 2


def intervals_in_order(length: int) -> Program:
    """A chain of the ends of one interval of each kind."""
    rows = tg.stream("E", "kind string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)
    given = [
        rows.where(rows.kind == f"K{i}").select("a", "z").as_intervals(start="a", end="z", name=f"K{i}")
        for i in range(length)
    ]
    return tg.program(R=tg.iseq(*(a.te < b.te for a, b in pairwise(given)), of=given, within=100))


def after_the_first(length: int) -> Program:
    """Each stream after the one before, and all within a minute of the first: between two of them a bound of one
    side.
    """
    streams = [tg.stream(f"S{i}", "t timestamp, k bigint", progress="t").as_(f"s{i}") for i in range(length)]
    joined: tg.Relation = streams[0]
    for a, b in pairwise(streams):
        joined = joined.join(b, a.k == b.k, a.t <= b.t, b.t <= streams[0].t + minutes(1))
    return tg.program(Q=joined.select(k=streams[0].k, t=streams[-1].t))


def purge_of(program: Program) -> Purge:
    rules = purge(program.facts.queries[0])
    assert rules is not None
    return rules


def test_keys_of_pairs_are_those_of_the_whole_chain() -> None:
    rules = purge(chain(6).facts.queries[0])
    assert rules is not None
    assert {rule.keys for rule in rules.cases[0].partners} == {(("k", "k"),)}


def rows_in_a_row(number: int) -> str:
    some = ", ".join(f"A{i} AS x > A{i - 1}.x" for i in range(1, number))
    order = " ".join(f"A{i}" for i in range(number))
    return f"PARTITION BY k ORDER BY t MEASURES A0.x AS x PATTERN ({order}) WITHIN 5 MINUTES DEFINE {some}"


@pytest.mark.long
def test_definitions_of_a_row_pattern_take_time_in_proportion() -> None:
    """Four times as many take four to six times as long, not fifteen as when each looked at the pattern, and at all
    others.
    """

    def explained(number: int) -> str:
        return str(tg.program(Q=S.match_recognize(rows_in_a_row(number))).explain().report)

    explained(10)
    assert seconds(lambda: explained(2400)) < 8 * seconds(lambda: explained(600))


@pytest.mark.long
def test_conditions_of_a_text_take_time_in_proportion() -> None:
    read(conditions(10))
    """Three times as many take three to four times as long, not nine as when each was copied for each that follows."""
    assert seconds(lambda: read(conditions(4800))) < 6 * seconds(lambda: read(conditions(1600)))


def test_a_pattern_of_many_situations_is_planned_step_by_step() -> None:
    """The cheapest of all orders is found by 2ⁿ sets; with twenty situations that took minutes."""
    program = tg.program(Q=read(situations(40)))
    start = time.process_time()
    assert "from A0: A1, A2" in str(program.explain())
    with program.session() as session:
        session.step()
    assert time.process_time() - start < 20


def test_orders_step_by_step_cost_what_the_model_says() -> None:
    count = MOST_EXACT + 2
    ring = {(i, i + 1): 0.1 * (1 + i % 3) for i in range(count - 1)}
    found = best_order(4, Statistics((10.0,) * count, ring))
    assert found.symbols[0] == 4
    assert sorted(found.symbols) == list(range(count))
    # Every next symbol is related to one before it.
    assert all(
        any(abs(one - other) == 1 for other in found.symbols[:place])
        for place, one in enumerate(found.symbols)
        if place
    )
    statistics = Statistics((10.0,) * count, ring)
    assert cost_of(found.symbols, statistics) == pytest.approx(found.cost)
    bound = [frozenset(found.symbols[: place + 1]) for place in range(count)]
    fitting = [results(some, 4, statistics) for some in bound]
    assert found.cost == pytest.approx(sum(some * log2(11) + more for some, more in pairwise(fitting)))
    # Of the last one there is hardly anything, yet what nothing relates to those before waits.
    alone = best_order(4, Statistics((*(10.0,) * (count - 1), 0.1), ring))
    assert alone.symbols[1] in (3, 5)
    few = Statistics((10.0,) * MOST_EXACT, {pair: share for pair, share in ring.items() if max(pair) < MOST_EXACT})
    order = best_order(2, few)
    assert cost_of(order.symbols, few) == pytest.approx(order.cost)


def test_too_long_a_text_is_refused_before_it_is_read() -> None:
    text = conditions(10) + " " * 10_000_000
    start = time.process_time()
    with pytest.raises(QueryError, match="TG222 the text has 10,000,"):
        read(text)
    assert time.process_time() - start < 1


def test_too_many_situations_are_refused() -> None:
    with pytest.raises(QueryError, match="TG223 a pattern of 300 situations; at most 256"):
        read(situations(300))


def test_messages_show_of_a_long_line_what_is_around_the_place() -> None:
    text = conditions(4000).replace("x > 2000", "x > oops")
    with pytest.raises(QueryError) as raised:
        read(text)
    told = str(raised.value)
    assert "oops" in told
    assert len(told) < 2000
    site = raised.value.site
    assert site is not None
    code, column = site.excerpt()
    assert column is not None
    assert site.column is not None
    assert code[column - 1 :].startswith(site.code[site.column - 1 : site.column + 50])
    line, caret = str(site).split("\n")
    assert line[caret.index("^") - 2 :].startswith(site.code[site.column - 1 :][:50])


def test_a_name_of_a_hundred_thousand_characters_is_not_repeated_whole() -> None:
    with pytest.raises(QueryError) as raised:
        S.where(S["n" * 100_000] > 1)
    assert len(str(raised.value)) < 5000


def test_short_lines_and_messages_are_shown_as_they_are() -> None:
    site = Site("query", 3, "A" * 200, 150)
    assert site.excerpt() == ("A" * 200, 150)
    problem = Problem("TG999", "m" * 2000, site, tuple(map(str, range(100))), "h")
    assert "m" * 2000 in str(problem)
    assert "more" not in str(problem)
    assert "… and 1 more" in str(Problem("TG999", "m", None, tuple(map(str, range(101)))))
    assert Site("f", 1, "B" * 201).excerpt() == ("B" * 200 + "…", None)


def around_the_first(length: int, how: JoinKind, *conditions: str) -> Program:
    """Each stream joined with the first alone."""
    first = tg.stream("S0", "t timestamp, k bigint", progress="t").as_("s0")
    joined: tg.Relation = first
    for i in range(1, length):
        other = tg.stream(f"S{i}", "t timestamp, k bigint", progress="t").as_(f"s{i}")
        near = {"from": first.t <= other.t, "until": other.t <= first.t + minutes(1)}
        joined = joined.join(other, first.k == other.k, *(near[one] for one in conditions), how=how)
    return tg.program(Q=joined.select(k=first.k, t=first.t))


@pytest.mark.parametrize("how", ["left", "anti"])
def test_left_and_anti_joins_with_the_first_stream_are_explained_in_steps_that_grow_with_them(how: JoinKind) -> None:
    """Of twice as many 2.4 times as many steps; 3.3 times where each makes pairs with what all before it have found."""
    few, many = (around_the_first(length, how, "from", "until") for length in (60, 120))
    str(around_the_first(3, how, "from", "until").explain())
    assert calls(lambda: str(many.explain())) < 2.6 * calls(lambda: str(few.explain()))


@pytest.mark.parametrize("how", ["left", "anti"])
@pytest.mark.long
def test_joins_that_are_all_without_a_bound_are_refused_as_soon_and_in_few_words(how: JoinKind) -> None:
    few, many = (around_the_first(length, how, "from") for length in (60, 120))
    assert around_the_first(3, how, "from").check()
    assert calls(many.check) < 3.4 * calls(few.check)
    problems = many.check()
    assert len(problems) == 119
    with pytest.raises(QueryError) as raised:
        many.explain()
    assert raised.value.problems == tuple(problems)
    told = str(raised.value)
    assert len(told) < 20_000
    assert told.endswith("… and 99 more, which `problems` of the error has")
    assert "ignores S2, S3, " in told


def rounded(count: int, *, apart: int = 0, never: bool = False) -> list[tg.Expression]:
    """Conditions of which each rounds in two ways of its own; `never`: no row satisfies one."""
    return [
        tg.floor(TICKS.t, n + 2) > tg.ceil(TICKS.t, n + 3)
        if never
        else tg.floor(TICKS.t, n + 2) < tg.ceil(TICKS.t, n + 3) - apart * n
        for n in range(count)
    ]


def test_of_many_alternatives_that_contradict_each_other_some_are_looked_at() -> None:
    """Each had a search of its own among all constraints: 320 took ten seconds, 640 more than a minute."""
    looked_at: list[Conflict] = []

    def looking(conflict: Conflict, of: Callable[[Conflict], tuple[Edge, ...]] = Conflict.cycle) -> tuple[Edge, ...]:
        looked_at.append(conflict)
        return of(conflict)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conflict, "cycle", looking)
        with pytest.raises(QueryError, match="TG204 no row can satisfy"):
            tg.program(Q=TICKS.where(reduce(or_, rounded(100, never=True)))).explain()
    assert 1 <= len(looked_at) <= 50


@pytest.mark.parametrize(
    ("condition", "cases"),
    [(lambda: reduce(or_, rounded(320, apart=1)), 320), (lambda: reduce(and_, rounded(300)), 1)],
    ids=["alternatives", "together"],
)
def test_instants_that_are_rounded_in_too_many_ways_are_refused_early(
    condition: Callable[[], tg.Expression], cases: int
) -> None:
    """Of 320 alternatives the zones took more than two gigabytes; 640 conditions together did not end in a minute."""
    start = time.process_time()
    with pytest.raises(QueryError, match=f"TG150 a condition has about {cases} temporal cases of 6.. instants"):
        tg.program(Q=TICKS.where(condition())).explain()
    assert time.process_time() - start < 5


def test_instants_may_be_rounded_in_many_ways() -> None:
    assert "Q" in str(tg.program(Q=TICKS.where(reduce(and_, rounded(40)))).explain())
    assert "Q" in str(tg.program(Q=TICKS.where(reduce(or_, rounded(40, apart=1)))).explain())
