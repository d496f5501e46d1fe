"""Where the optimiser looks contexts up, which queries share a look-up, and that results stay what they are."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import MINUTES, NAMES, REPORTS, STOPPED, drawn, program, traffic
from tests.shards import shards
from tidegate.algebra.nodes import Distinct, Group, Join, Node, Row, Scan, Union, children, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.semantics import as_bag, evaluate_program
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser import programs
from tidegate.contexts.optimiser.filters import filter_of, models_of
from tidegate.contexts.optimiser.grouping import gathered, grouped
from tidegate.contexts.optimiser.programs import optimised
from tidegate.contexts.optimiser.push_down import pushed_down, rewritten_by
from tidegate.contexts.optimiser.sharing import look_up_at_stream, share_of
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ordered.asof import operator
from tidegate.runtime.ordered.new_events import few_new_events
from tidegate.runtime.rows import as_frame

MODEL = traffic()
MODELS = models_of(tg.program(Q=REPORTS.in_context(MODEL, "congestion")).definition.queries)
BLOCKED = tg.between(STOPPED.where(~STOPPED.cleared), STOPPED.where(STOPPED.cleared), by="segment")
A, B, C = (REPORTS.as_(name) for name in "abc")
NEAR = (A.segment == B.segment, A.time < B.time, B.time <= A.time + 10)
PAIRS = A.join(B, *NEAR)
THREE = PAIRS.join(C, B.segment == C.segment, B.time < C.time, C.time <= B.time + 10)
#: Where the rows of a pair are looked up.
AT_A, AT_B = (dict[str, Any](by=f"{side}.segment", at=f"{side}.time") for side in "ab")


def congested(rows: tg.Relation, **options: Any) -> tg.Relation:
    return rows.in_context(MODEL, "congestion", **options)


def down(relation: tg.Relation) -> Node:
    """What the optimiser makes of a query."""
    queries = tg.program(Q=relation).definition.queries
    (query,) = (query for query in queries if query.name == "Q")
    return pushed_down(query, models_of(queries)).node


def look_ups_below(node: Node, kind: type[object], *, below: bool = False) -> int:
    """How many look-ups stand below an operator of a kind."""
    here = below and isinstance(node, AsOf)
    inside = below or isinstance(node, kind)
    return here + sum(look_ups_below(child, kind, below=inside) for child in children(node))


@pytest.mark.parametrize(
    ("relation", "kind", "expected"),
    [
        (lambda: congested(PAIRS, **AT_A), Join, 1),
        (lambda: congested(PAIRS, **AT_B), Join, 1),
        (lambda: congested(PAIRS.where(PAIRS["a.car"] < PAIRS["b.car"]), **AT_B), Join, 1),
        (lambda: congested(PAIRS.with_(more=PAIRS["a.car"]), **AT_B), Join, 1),
        (lambda: congested(PAIRS.rename({"b.time": "end"}), by="b.segment", at="end"), Join, 1),
        (lambda: congested(A.join(B, *NEAR, how="left"), **AT_A), Join, 1),
        (lambda: congested(A.semi_join(B, *NEAR).unqualified()), Join, 1),
        (lambda: congested(A.anti_join(B, *NEAR).unqualified()), Join, 1),
        (lambda: congested(REPORTS.select("segment", "time").distinct()), Distinct, 1),
        (
            lambda: congested(PAIRS.group_by("b.segment", "b.time").agg(n=tg.count())),
            Group,
            1,
        ),
        (lambda: PAIRS.not_in_context(MODEL, "accident", **AT_A), Join, 1),
        (lambda: PAIRS.in_context(MODEL, "congestion", "accident", **AT_A), Join, 1),
        (lambda: PAIRS.in_context(MODEL, "clear", **AT_A), Join, 1),
        (lambda: congested(PAIRS, **AT_B).in_context(MODEL, "accident", **AT_A), Join, 2),
        # Windows between rows have changes that are no result of the program.
        (lambda: PAIRS.in_context(BLOCKED, **AT_A), Join, 1),
    ],
)
def test_a_filter_goes_down(relation: Callable[[], tg.Relation], kind: type[object], expected: int) -> None:
    assert look_ups_below(down(relation()), kind) == expected


@pytest.mark.parametrize(
    ("relation", "kind"),
    [
        # Rows before the window count.
        (
            lambda: congested(
                REPORTS.over(by="segment", order="time", range=10, n=tg.count()).where(lambda r: r.n < 2)
            ),
            Over,
        ),
        # On fewer rows a term without a value would fail on fewer.
        (lambda: congested(A.join(B, *NEAR, tg.lit(7) // B.car > 0), **AT_A), Join),
        (lambda: congested(PAIRS.where(tg.lit(7) // PAIRS["b.car"] > 0), **AT_A), Join),
        # A group of other rows, whichever they are, is not one of those in the context.
        (
            lambda: congested(PAIRS.group_by("a.time", segment=PAIRS["a.segment"] + 0).agg(n=tg.count()), at="time"),
            Join,
        ),
    ],
)
def test_a_filter_stays(relation: Callable[[], tg.Relation], kind: type[object]) -> None:
    node = down(relation())
    assert look_ups_below(node, kind) == 0
    assert any(isinstance(each, AsOf) for each in nodes_of(node))


def test_groups_that_are_made_as_rows_come_are_looked_up_as_groups() -> None:
    per_minute = REPORTS.group_by("segment", end=tg.ceil(REPORTS.time, 10)).agg(n=tg.count())
    assert look_ups_below(down(congested(per_minute, at="end")), Group) == 0


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (lambda: congested(PAIRS, **AT_B, since="a.time"), 2),
        (lambda: congested(THREE, by="c.segment", at="c.time", since="a.time"), 3),
        # Nothing says that the second of three rows comes before the last one.
        (
            lambda: congested(
                PAIRS.join(C, B.segment == C.segment, A.time < C.time, C.time <= A.time + 10),
                by="c.segment",
                at="c.time",
                since="a.time",
            ),
            2,
        ),
        # Nothing says that the first row is of the same segment, or comes first.
        (lambda: congested(A.join(B, *NEAR[1:]), **AT_B, since="a.time"), 1),
        (lambda: congested(A.join(B, NEAR[0], A.time < B.time + 5, B.time <= A.time + 10), **AT_B, since="a.time"), 1),
        # What began before the match may still be in a window that began earlier.
        (lambda: congested(PAIRS, **AT_B), 1),
        (lambda: PAIRS.in_context(MODEL, "congestion", "accident", **AT_B, since="a.time"), 2),
        (lambda: PAIRS.in_context(MODEL, "clear", **AT_B, since="a.time"), 2),
    ],
)
def test_a_whole_match_is_looked_up_row_by_row(relation: Callable[[], tg.Relation], expected: int) -> None:
    assert look_ups_below(down(relation()), Join) == expected


@pytest.mark.parametrize("as_frames", [False, True])
@pytest.mark.parametrize("keys", [NEAR, NEAR[1:]], ids=["of a segment", "of any"])
def test_the_window_of_a_match_is_compared_above(
    keys: Sequence[Any], as_frames: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of two windows of a context make no match, whether each row is looked up or the last one alone."""
    if as_frames:
        monkeypatch.setattr(operator, "few_new_events", lambda *args: as_frame(few_new_events(*args)))
    inputs = {
        "Minutes": [(1, 10, 60, 30.0), (1, 12, 10, 60.0), (1, 13, 60, 30.0)],
        "Stopped": [],
        "Reports": [(7, 1, at, "") for at in (10, 11, 12, 13, 14, 20)],
    }
    pairs = congested(A.join(B, *keys), **AT_B, since="a.time").select("a.time", "b.time")
    found = tg.program(Q=pairs).run(inputs)["Q"]
    # (10, 12] and from 13 on: the row at 10 is before the first, that at 13 before the second.
    assert sorted(zip(*(found[name] for name in ("a.time", "b.time")), strict=True)) == [(11, 12), (14, 20)]


SETTINGS = tg.stream("Settings", "segment bigint, time bigint, context string, began bigint", progress="time")


def last_before(rows: tg.Relation, other: tg.Relation, **options: Any) -> tg.Relation:
    """The rows of pairs with the last row of another relation before their second row."""
    by = [("b.segment", "s.segment")]
    return rows.asof_join(other.as_("s"), by=by, left_on="b.time", right_on="s.time", strict=True, **options)


def test_settings_that_look_like_changes_are_none() -> None:
    """What was set last before the second row of a pair says nothing of the first one."""
    found = last_before(PAIRS, SETTINGS.where(SETTINGS.context == "x"), how="inner")
    found = found.where(lambda r: r["s.began"] < r["a.time"]).select("a.time", "b.time")
    inputs = {
        "Minutes": [],
        "Stopped": [],
        "Reports": [(7, 1, at, "") for at in (5, 8)],
        "Settings": [(1, 6, "x", 0)],
    }
    found_pairs = tg.program(Q=found, Toll=congested(REPORTS)).run(inputs)["Q"]
    assert [*zip(found_pairs["a.time"], found_pairs["b.time"], strict=True)] == [(5, 8)]


def test_settings_of_several_kinds_are_no_contexts_to_group() -> None:
    settings = tg.stream("Choices", "segment bigint, time bigint, context string", progress="time")
    relations = {
        name: last_before(PAIRS, settings.where(settings.context == name), how="inner").select("a.time", "b.time")
        for name in ("x", "y")
    }
    inputs = {
        "Minutes": [],
        "Stopped": [],
        "Reports": [(7, 1, at, "") for at in (5, 8, 12)],
        "Choices": [(1, 6, "x"), (1, 9, "y")],
    }
    found = tg.program(**relations, Toll=congested(REPORTS)).run(inputs)
    pairs = {name: sorted(zip(found[name]["a.time"], found[name]["b.time"], strict=True)) for name in relations}
    assert pairs == {"x": [(5, 8), (5, 12), (8, 12)], "y": [(5, 12), (8, 12)]}


def test_what_a_query_makes_of_changes_itself_is_no_look_up() -> None:
    """A pair whose second row comes after the end of a clear window that had begun before the first one."""
    changes = MODEL.changes.where(MODEL.changes.context == "clear")
    found = last_before(PAIRS, changes, tie="s.change").where(
        lambda r: (r["s.change"] == "end") & tg.coalesce(r["s.began"] < r["a.time"], r["a.time"].is_not_null())
    )
    inputs = {
        "Minutes": [(1, 10, 60, 30.0), (1, 12, 10, 60.0), (1, 20, 60, 30.0)],
        "Stopped": [],
        "Reports": [(7, 1, at, "") for at in (15, 22)],
    }
    pairs = tg.program(Q=found.select("a.time", "b.time")).run(inputs)["Q"]
    assert [*zip(pairs["a.time"], pairs["b.time"], strict=True)] == [(15, 22)]


def test_changes_of_several_partitions_are_no_look_up() -> None:
    """The last change of a context anywhere says nothing of a partition."""
    changes = MODEL.changes.where(MODEL.changes.context == "clear").as_("s")
    found = PAIRS.asof_join(changes, left_on="b.time", right_on="s.time", tie="s.change", strict=True)
    found = found.where(lambda r: tg.coalesce(r["s.change"] == "start", True)).select("a.time", "b.time")
    assert filter_of(found._node, MODELS) is None


def test_a_row_that_leaves_others_out_may_be_outside_of_their_context() -> None:
    inputs = {
        "Minutes": [(1, 10, 60, 30.0), (1, 12, 10, 60.0), (2, 10, 60, 30.0)],
        "Stopped": [],
        "Reports": [(7, 1, 11, ""), (8, 1, 15, ""), (9, 2, 11, "")],
    }
    alone = congested(A.anti_join(B, *NEAR).unqualified()).select("car", "time")
    # Congestion is over at 12 in the first segment: the car at 15 is outside, and is near that at 11 all the same.
    assert [*tg.program(Q=alone).run(inputs)["Q"]["car"]] == [9]


def test_all_rows_of_a_union_and_of_a_difference_are_looked_up() -> None:
    """Also where the filter goes further down into one of the inputs only."""
    inputs = {
        "Minutes": [(1, 10, 60, 30.0), (1, 20, 10, 60.0)],
        "Stopped": [],
        "Reports": [(car, 1, at, "exit" if car > 8 else "travel") for car, at in ((7, 15), (8, 25), (9, 15), (10, 25))],
    }
    every = REPORTS.select("car", "segment", "time")
    leaving = REPORTS.where(REPORTS.lane == "exit").select("car", "segment", "time")
    either = every.difference(leaving).distinct().union(leaving)
    found = tg.program(
        Either=congested(either, values={"since": "began"}), Without=congested(every.difference(leaving))
    ).run(inputs)
    assert sorted(found["Either"]["car"]) == [7, 9]
    assert [*found["Without"]["car"]] == [7]


def test_a_match_before_all_changes_is_in_the_default_context() -> None:
    inputs = {"Minutes": [], "Stopped": [], "Reports": [(7, 1, at, "") for at in (10, 14)]}
    pairs = PAIRS.in_context(MODEL, "clear", **AT_B, since="a.time").select("a.time", "b.time")
    found = tg.program(Q=pairs).run(inputs)["Q"]
    assert [*zip(found["a.time"], found["b.time"], strict=True)] == [(10, 14)]


def queries() -> dict[str, tg.Relation]:
    """Queries that the optimiser changes, each in its way."""
    travel, exit_ = (REPORTS.where(REPORTS.lane == lane) for lane in ("travel", "exit"))
    some = [congested(travel.where(travel.car < number), values={"since": "began"}) for number in (20, 40)]
    both = [PAIRS.in_context(MODEL, name, **AT_B, since="a.time") for name in ("congestion", "accident")]
    return {
        "Whole": congested(PAIRS, **AT_B, since="a.time", values={"since": "began"}),
        "First": congested(PAIRS, **AT_A).select("a.car", "a.time", "b.time"),
        "Three": THREE.in_context(MODEL, "accident", by="c.segment", at="c.time", since="a.time"),
        "Alone": A.anti_join(B, *NEAR).unqualified().in_context(MODEL, "congestion", "accident"),
        "Neither": PAIRS.not_in_context(MODEL, "congestion", "accident", **AT_A).select("a.car", "b.time"),
        "Low": some[0].group_by("segment", "since", w=tg.ceil(some[0].time, 20)).agg(n=tg.count()),
        "High": some[1],
        "Exit": congested(exit_).select("car", "time"),
        "Once": both[0].union(both[1]).select("a.time", "b.time").distinct(),
        "Slow": both[0].select("a.car", "b.time"),
        "Blocked": both[1].select("b.car", "a.time"),
        "Beside": with_others(30).in_context(MODEL, "congestion", **AT_B, since="a.time").select("a.car", "c.time"),
        "Near": with_others(90).in_context(MODEL, "accident", **AT_B, since="a.time").select("b.car", "c.time"),
        "Clear": THREE.in_context(MODEL, "clear", by="c.segment", at="c.time", since="b.time").select(
            "a.car", "c.time"
        ),
    }


def facts_of(relations: Mapping[str, tg.Relation]) -> tuple[ProgramFacts, ProgramFacts]:
    """The facts of a program as it was written, and as it runs."""
    definition = tg.program(**relations).definition
    written = analyse(definition)
    return written, optimised(definition, written)


@pytest.mark.parametrize("seed", shards(3))
def test_results_are_the_same(seed: int) -> None:
    rows = drawn(seed, 150)
    relations = queries()
    written, made = facts_of(relations)
    assert made is not written
    meant = evaluate_program(tg.program(**relations).definition, rows)
    for facts in (written, made):
        with Session(facts) as session:
            rng, left = random.Random(seed), {name: sorted(own, key=_time(name)) for name, own in rows.items()}
            while any(left.values()):
                for name, own in left.items():
                    batch = own[: rng.choice((0, 10, 40))]
                    del own[: len(batch)]
                    session.push(name, rng.sample(batch, len(batch)))
                    session.advance(name, min((_time(name)(row) for row in own), default=200) - 1)
                session.step()
            session.finish()
            session.step()
            for name in relations:
                found = [tuple(row.values()) for row in session.results(name)]
                assert as_bag(found) == as_bag(meant[name]), name
            assert not any(session.live_rows().values())
    assert sum(bool(meant[name]) for name in relations) > len(relations) / 2


def _time(name: str) -> Callable[[Row], int]:
    place = 2 if name == "Reports" else 1
    return lambda row: int(row[place])  # type: ignore[arg-type]  # an instant


def test_results_keep_their_definitions() -> None:
    written, made = facts_of(queries())
    for name, stream in written.streams.items():
        if "~" not in name:
            assert made.streams[name].schema == stream.schema
            assert {*made.streams[name].progress} == {*stream.progress}


def joins(facts: ProgramFacts) -> list[AsOf]:
    """The look-ups that a program makes, those that are made once once."""
    return [node for query in facts.queries for node in nodes_of(query.query.node) if isinstance(node, AsOf)]


def reads_a_join(facts: ProgramFacts, look_up: AsOf) -> bool:
    """Whether a join stands below a look-up, in unnamed parts, too."""
    inner = {query.query.stream: query.query.node for query in facts.queries if query.query.inner}
    waiting = [look_up.left]
    for below in waiting:
        nodes = nodes_of(below)
        if any(isinstance(node, Join) for node in nodes):
            return True
        waiting += [inner[node.stream.name] for node in nodes if isinstance(node, Scan) and node.stream.name in inner]
    return False


def test_queries_of_one_context_share_a_look_up() -> None:
    kept = {name: relation for name, relation in queries().items() if name in ("Low", "High", "Exit")}
    written, made = facts_of(kept)
    assert (len(joins(written)), len(joins(made))) == (3, 1)
    (join,) = joins(made)
    # Of the rows those are looked up that one of them asks for.
    assert not isinstance(join.left, Scan)


def test_rows_that_any_of_the_queries_asks_for_are_looked_up() -> None:
    lanes = ("travel", "exit")
    inputs = {
        "Minutes": [(1, 5, 60, 30.0)],
        "Stopped": [],
        "Reports": [(car, 1, 10 + car, lane) for car in (1, 2, 3) for lane in (*lanes, "ramp")],
    }
    asked = {lane: congested(REPORTS.where(REPORTS.lane == lane)).select("car", "time") for lane in lanes}
    assert len(joins(facts_of(asked)[1])) == 1
    found = tg.program(**asked).run(inputs)
    assert {lane: [*found[lane]["car"]] for lane in lanes} == {lane: [1, 2, 3] for lane in lanes}


def test_queries_that_are_an_operator_alone_share_it_too() -> None:
    first = congested(REPORTS)
    written, made = facts_of({"One": first, "Two": first.select("car", "time")})
    assert (len(joins(written)), len(joins(made))) == (2, 1)


def test_a_query_by_itself_stays() -> None:
    written, made = facts_of({"One": congested(REPORTS.where(REPORTS.lane == "exit"))})
    assert made is written
    plain = analyse(tg.program(All=REPORTS.where(REPORTS.car > 1)).definition)
    assert optimised(plain.program, plain) is plain


def test_other_contexts_instants_and_keys_are_looked_up_apart() -> None:
    both = REPORTS.with_(ahead=REPORTS.car)
    _, made = facts_of(
        {
            "Here": congested(REPORTS).select("car", "time"),
            "There": congested(both, by="ahead").select("car", "time"),
            "Blocked": REPORTS.in_context(MODEL, "accident").select("car", "time"),
        }
    )
    assert len(joins(made)) == 3


def test_of_many_changes_those_that_can_not_be_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is due at any time: alone it is never known to be the last one, and joined with a report it is."""
    tasks = tg.stream("Tasks", "segment bigint, made bigint, due bigint", progress="made", temporal="due").as_("d")
    done = tasks.join(B, tasks.segment == B.segment, tasks.made <= B.time, tasks.due == B.time)
    asked = {f"Q{number:02}": congested(PAIRS.where(PAIRS["a.car"] > number), **AT_A) for number in range(12)}
    asked["Q05due"] = congested(done, by="d.segment", at="d.due")
    analysed: list[object] = []

    def counted(definition: ProgramDef) -> ProgramFacts:
        analysed.append(definition)
        return analyse(definition)

    monkeypatch.setattr(programs, "analyse", counted)
    written, made = facts_of(dict(sorted(asked.items())))
    assert [reads_a_join(written, join) for join in joins(written)] == [True] * 13
    assert sorted(reads_a_join(made, join) for join in joins(made)) == [False, True]
    # All, by halves down to the one that stays, and once more as the others have one look-up at the stream.
    assert len(analysed) <= 10


def test_all_of_a_stream_is_looked_up_where_most_of_it_is_asked_for() -> None:
    asked = [REPORTS.car != number for number in range(6)]
    _, made = facts_of({f"Q{n}": congested(REPORTS.where(condition)) for n, condition in enumerate(asked)})
    (join,) = joins(made)
    assert isinstance(join.left, Scan)


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        (REPORTS.car == 1, 0.1),
        ((REPORTS.car == 1) & (REPORTS.lane == "exit"), 0.01),
        ((REPORTS.car == 1) | (REPORTS.car == 2), 0.2),
        (REPORTS.car < 1, 0.3),
        (REPORTS.car.is_null(), 0.5),
    ],
)
def test_shares_of_rows_are_guessed(condition: tg.Expression, share: float) -> None:
    assert share_of(condition._term) == pytest.approx(share)


def test_a_filter_is_read_from_nodes() -> None:
    pairs = congested(PAIRS, **AT_B, since="a.time")
    found = filter_of(pairs._node, MODELS)
    assert found is not None
    made, rows = found
    assert (made.keys, made.at, made.since, made.carried) == (("b.segment",), "b.time", "a.time", ())
    assert made.over(rows) == pairs._node
    assert filter_of(REPORTS._node, MODELS) is None
    assert filter_of(REPORTS.select("car")._node, MODELS) is None
    assert filter_of(pairs._node, {}) is None
    renamed = REPORTS.where(REPORTS.car > 1).rename(segment="place")
    at_stream = look_up_at_stream(congested(renamed, by="place")._node, MODELS)
    assert at_stream is not None
    assert at_stream.filter.keys == ("segment",)
    assert at_stream.stream == REPORTS._node
    assert look_up_at_stream(congested(PAIRS, **AT_A)._node, MODELS) is None


def test_equal_queries_of_several_contexts_are_one() -> None:
    both = [PAIRS.in_context(MODEL, name, **AT_B, since="a.time") for name in ("congestion", "accident")]
    once = both[0].union(both[1]).distinct()._node
    made = grouped(once, MODELS)
    assert made is not None
    assert isinstance(made, Distinct)
    assert not isinstance(made.input, Union)
    assert made.schema == once.schema
    (windows,) = (node for node in nodes_of(made) if isinstance(node, GroupedWindows))
    assert windows.contexts == ("congestion", "accident")


@pytest.mark.parametrize(
    "relation",
    [
        # With duplicates there are as many as contexts.
        lambda: congested(REPORTS).union(REPORTS.in_context(MODEL, "accident")),
        lambda: congested(REPORTS).union(REPORTS.in_context(MODEL, "clear")).distinct(),
        lambda: congested(REPORTS).union(REPORTS.where(REPORTS.car > 1).in_context(MODEL, "accident")).distinct(),
        lambda: (
            congested(REPORTS, values={"s": "began"})
            .union(REPORTS.in_context(MODEL, "accident", values={"s": "began"}))
            .distinct()
        ),
        lambda: (
            PAIRS.in_context(MODEL, "clear", **AT_B, since="a.time")
            .union(PAIRS.in_context(MODEL, "accident", **AT_B, since="a.time"))
            .distinct()
        ),
        lambda: (
            congested(PAIRS, **AT_B, since="a.time")
            .union(PAIRS.in_context(MODEL, "clear", **AT_B, since="a.time"))
            .distinct()
        ),
    ],
)
def test_other_unions_stay(relation: Callable[[], tg.Relation]) -> None:
    assert grouped(relation()._node, MODELS) is None


def test_what_is_no_part_of_a_group_stays_in_the_union() -> None:
    inside = [REPORTS.in_context(MODEL, name) for name in ("congestion", "accident", "clear")]
    rows = inside[0].union(*inside[1:], REPORTS.where(REPORTS.car == 1)).distinct()
    (query,) = (query for query in tg.program(Q=rows).definition.queries if query.name == "Q")
    made = rewritten_by(query, lambda node: grouped(node, MODELS)).node
    assert isinstance(made, Distinct)
    assert isinstance(made.input, Union)
    assert len(made.input.inputs) == 3


def queries_of(**relations: tg.Relation) -> list[Query]:
    """The queries of some results, as they were written."""
    return [query for query in tg.program(**relations).definition.queries if query.name in relations]


def test_the_same_rows_in_several_contexts_are_found_once() -> None:
    """Where each context is a result of its own, and one of both: by one join of what lies in any of them."""
    slow, blocked = (PAIRS.in_context(MODEL, name, **AT_B, since="a.time") for name in ("congestion", "accident"))
    either = PAIRS.in_context(MODEL, "congestion", "accident", **AT_B, since="a.time")
    relations = {"Slow": slow, "Blocked": blocked.select("a.car", "b.time"), "Either": either}
    made = [pushed_down(query, MODELS).node for query in gathered(queries_of(**relations), MODELS)]
    joins_ = [next(node for node in nodes_of(each) if isinstance(node, Join)) for each in made]
    assert joins_[0] == joins_[1] == joins_[2]
    assert look_ups_below(made[0], Join) == 2
    # Of what was found each context is looked up, and both are not once more.
    assert [sum(isinstance(node, AsOf) for node in nodes_of(each)) for each in made] == [3, 3, 2]
    assert [node.schema for node in made] == [relation._node.schema for relation in relations.values()]
    _, facts = facts_of({name: relations[name] for name in ("Slow", "Blocked")})
    whole = [node for query in facts.queries for node in nodes_of(query.query.node)]
    assert sum(isinstance(node, Join) for node in whole) == 1
    assert sum(isinstance(node, AsOf) for node in whole) == 3  # one at the stream, and one for each context


def distinct_joins(nodes: Sequence[Node]) -> int:
    """How many joins there are that differ."""
    return len({node for each in nodes for node in nodes_of(each) if isinstance(node, Join)})


def with_others(number: int) -> tg.Relation:
    """Pairs, each with a third row that is another one of each result."""
    return PAIRS.join(C, B.segment == C.segment, B.time < C.time, C.time <= B.time + 10, C.car > number)


@pytest.mark.parametrize(
    ("relations", "written", "once"),
    [
        # Each context has pairs with rows of its own: the pairs are found once, and the filter of each goes no further.
        (
            lambda: [
                with_others(number).in_context(MODEL, name, **AT_B, since="a.time")
                for number, name in enumerate(("congestion", "accident"))
            ],
            3,
            3,
        ),
        # All of what one of them asks for is a part of the other.
        (lambda: [congested(PAIRS, **AT_B), THREE.in_context(MODEL, "accident", **AT_B)], 2, 2),
        (
            lambda: [
                with_others(1).where(lambda r: r["a.car"] < 50).in_context(MODEL, "accident", **AT_A),
                congested(PAIRS.rename({"b.car": "next"}), **AT_A),
            ],
            2,
            2,
        ),
        # The largest part that both have, and not a part of that.
        (
            lambda: [
                congested(THREE.where(lambda r: r["a.car"] < 50), **AT_B),
                THREE.in_context(MODEL, "accident", **AT_B),
            ],
            2,
            2,
        ),
    ],
)
def test_a_part_in_several_contexts_is_found_once(
    relations: Callable[[], Sequence[tg.Relation]], written: int, once: int
) -> None:
    """As many joins differ as they do in what was written: what several read stays common to them."""
    asked = {f"Q{number}": relation for number, relation in enumerate(relations())}
    queries = queries_of(**asked)
    assert distinct_joins([query.node for query in queries]) == written
    made = [pushed_down(query, MODELS).node for query in gathered(queries, MODELS)]
    assert distinct_joins(made) == once
    assert [node.schema for node in made] == [query.node.schema for query in queries]
    assert all(look_ups_below(node, Join) for node in made)


def many(contexts: int) -> tg.ContextModel:
    """Contexts that begin at minutes with so many cars."""
    names = [f"c{number}" for number in range(contexts)]
    model = tg.context_model("Many", by="segment", default="none", contexts=names)
    for number, name in enumerate(names):
        model = model.initiate(name, when=MINUTES.where(MINUTES.cars == number))
    return model


def test_a_part_of_ten_results_in_as_many_contexts_is_found_once() -> None:
    model = many(10)
    asked = {
        f"Q{number}": with_others(number)
        .in_context(model, f"c{number}", **AT_B, since="a.time")
        .select("a.car", "c.time")
        for number in range(10)
    }
    for facts in facts_of(asked):
        assert distinct_joins([query.query.node for query in facts.queries]) == 11


def test_rows_in_one_context_are_not_those_in_others() -> None:
    """A result reads a part that is found once of its context and another one, and one that is so of two others."""
    model, names = many(3), ("b.segment", "a.time", "b.time")
    pairs, three = PAIRS.select(*names), THREE.select(*names)
    asked = {
        "Either": (three.union(pairs), "c0"),
        "Three": (three, "c1"),
        "Pairs": (pairs, "c1"),
        "Others": (pairs, "c2"),
    }
    inputs = {"Minutes": [(1, 1, 0, 30.0)], "Reports": [(7, 1, at, "") for at in (5, 8)]}
    found = tg.program(
        **{
            name: rows.in_context(model, context, by="segment", at="b.time", since="a.time")
            for name, (rows, context) in asked.items()
        }
    ).run(inputs)
    assert [(row["a.time"], row["b.time"]) for row in found.rows("Either")] == [(5, 8)]
    assert [found.rows(name) for name in ("Three", "Pairs", "Others")] == [[], [], []]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Of one that need not have begun before the match.
        (
            lambda: congested(PAIRS, **AT_B, since="a.time"),
            lambda: PAIRS.in_context(MODEL, "accident", **AT_B),
        ),
        (lambda: congested(PAIRS, **AT_B), lambda: PAIRS.in_context(MODEL, "accident", **AT_A)),
        (lambda: congested(PAIRS, **AT_B), lambda: PAIRS.in_context(MODEL, "clear", **AT_B)),
        # The pairs that one of them reads have to be in the context of the third row.
        (
            lambda: congested(PAIRS, **AT_B),
            lambda: THREE.in_context(MODEL, "accident", by="c.segment", at="c.time"),
        ),
        (lambda: congested(PAIRS, **AT_B), lambda: congested(PAIRS, **AT_B).select("a.car")),
        # Nothing goes down: what each context has is looked up at the stream.
        (lambda: congested(REPORTS), lambda: REPORTS.in_context(MODEL, "accident")),
    ],
)
def test_other_rows_of_several_contexts_are_found_apart(
    one: Callable[[], tg.Relation], other: Callable[[], tg.Relation]
) -> None:
    given = queries_of(One=one(), Other=other())
    assert all(made is query for made, query in zip(gathered(given, MODELS), given, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_running_example_is_changed_in_nothing(name: str) -> None:
    rows = drawn(11)
    meant = evaluate_program(program().definition, rows)
    found = program().run(rows)
    assert as_bag([tuple(row.values()) for row in found.rows(name)]) == as_bag(meant[name])


def test_rows_of_several_contexts_know_the_first_beginning() -> None:
    inputs = {
        "Minutes": [(1, 10, 60, 30.0), (1, 20, 10, 60.0)],
        "Stopped": [(1, 15, 7, False), (1, 25, 7, True)],
        "Reports": [(7, 1, at, "") for at in (10, 11, 15, 20, 21, 25, 26)],
    }
    rows = REPORTS.in_context(MODEL, "congestion", "accident", values={"since": "began"})
    found = tg.program(Q=rows.select("time", "since")).run(inputs)["Q"]
    assert [*zip(found["time"], found["since"], strict=True)] == [(11, 10), (15, 10), (20, 10), (21, 15), (25, 15)]
