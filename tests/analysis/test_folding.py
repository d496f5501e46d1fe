"""What folds of the rows that are kept for ever, and what stops it: the forms that people use, and the near misses."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.state.bounds import Unbounded
from tidegate.analysis.state.folding.classes import Best
from tidegate.analysis.state.folding.foldable import (
    MOST_OCCURRENCES,
    Complement,
    Foldable,
    _Question,
    folding,
    why_unknown,
)

o = tg.stream("O", "k bigint, t bigint, u bigint, qty bigint", progress="t", temporal=["u"]).as_("o")
p = tg.stream("P", "k bigint, t bigint, u bigint, v bigint", progress="t", temporal=["u"]).as_("p")
earlier = tg.stream("P", "k bigint, t bigint, u bigint, v bigint", progress="t", temporal=["u"]).as_("e")
z = tg.stream("Z", "k bigint, t bigint", progress="t").as_("z")
NOW = "rate({0}) × (skew({0}) + lag)"
complement = _Question.complement


def foldings(query: Any) -> list[Foldable]:
    """The foldings of the occurrences of a query, in order."""
    facts = tg.program(R=query).facts.queries[0]
    latencies, promised = Latencies.among(facts.propagation), tuple(facts.propagation)
    found = [folding(facts.query.node, i, {}, promised, latencies) for i in range(len(facts.occurrences))]
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


def stopped(found: Foldable) -> list[str]:
    """What stands against a bound."""
    return [str(obstacle) for obstacle in found.obstacles()]


def looked_up(*conditions: Any, how: Any = "inner", **aggregates: Any) -> Foldable:
    """The folding of P, whose rows an order of O looks up under these conditions."""
    joined = o.join(p, *conditions, how=how)
    made = aggregates or {"v": tg.last(p.v, by=p.t)}
    return foldings(joined.group_by(o.k, o.t).agg(**made))[1]


SAME = o.k == p.k


@pytest.mark.parametrize("how", ["inner", "left"])
def test_the_last_price_of_each_key(how: str) -> None:
    found = looked_up(SAME, p.t <= o.t, how=how)
    assert str(found) == f"keys(P by k) + {NOW.format('P')}"
    (stored,) = found.classes.payload
    assert (stored.argument is not None, stored.order is not None) == (True, True)


def test_a_running_total_stores_a_partial_of_each_aggregate() -> None:
    found = looked_up(SAME, p.t <= o.t, n=tg.count(), s=tg.sum(p.v), q=tg.sum(o.qty), most=tg.max(p.v))
    assert str(found) == f"keys(P by k) + {NOW.format('P')}"
    assert [one.aggregate.name for one in found.classes.payload] == ["s", "most"]


@pytest.mark.parametrize("condition", [p.t <= tg.floor(o.t, 20), tg.ceil(p.t, 20) <= o.t])
def test_a_rounding_delays_by_less_than_a_unit(condition: Any) -> None:
    assert str(looked_up(SAME, condition)) == "keys(P by k) + rate(P) × (18 + skew(P) + lag)"


def test_a_rounding_settles_by_its_negation_not_by_what_it_implies() -> None:
    (comparison,) = looked_up(SAME, p.t <= tg.floor(o.t, 10)).comparisons
    assert comparison.value({"t": 5, "u": 0}, {"t": 4}) is None
    assert comparison.value({"t": 5, "u": 0}, {"t": 12}) is None
    assert comparison.value({"t": 5, "u": 0}, {"t": 13}) is True


def test_a_comparison_settles_at_the_tick_before() -> None:
    (comparison,) = looked_up(SAME, p.t <= o.t).comparisons
    assert comparison.value({"t": 6, "u": 0}, {"t": 5}) is True
    assert comparison.value({"t": 7, "u": 0}, {"t": 5}) is None


def test_existence_needs_one_row_a_key() -> None:
    first = foldings(p.anti_join(earlier, p.k == earlier.k, earlier.t < p.t))[1]
    assert str(first) == "keys(P by k) + rate(P) × skew(P)"
    assert first.existence
    assert first.classes.payload == ()
    ever = foldings(o.semi_join(p, SAME, p.t < o.t))[1]
    assert str(ever) == f"keys(P by k) + {NOW.format('P')}"


def test_previous_event_of_the_same_stream() -> None:
    pairs = p.left_join(earlier, p.k == earlier.k, earlier.t < p.t)
    found = foldings(pairs.group_by(p.k, p.t).agg(before=tg.last(earlier.v, by=earlier.t)))[1]
    assert str(found) == "keys(P by k) + rate(P) × skew(P)"


def test_in_a_context_the_latest_start_and_end_of_each_key_stand_for_all() -> None:
    within = o.join(p, SAME, p.t < o.t).anti_join(z, z.k == p.k, p.t < z.t, z.t < o.t)
    _, start, end = foldings(within.select(o.k, o.t, o.qty).distinct())
    assert [str(start), str(end)] == [f"keys({name} by k) + {NOW.format(name)}" for name in "PZ"]
    for one in (start, end):
        assert one.classes.dominance is not None
        assert (one.classes.dominance.attribute, one.classes.dominance.best) == ("t", Best.GREATEST)
    # A bag counts the starts, so that each must be told from the others.
    _, start, end = foldings(within.select(o.k, o.t, o.qty))
    assert not start.is_bounded
    assert end.is_bounded


def test_the_best_row_does_not_stand_for_others_where_a_distinct_puts_their_instants_out() -> None:
    within = o.join(p, SAME, p.t < o.t).anti_join(z, z.k == p.k, p.t < z.t, z.t < o.t)
    start = foldings(within.select(o.k, o.t, since=p.t).distinct())[1]
    assert start.classes.dominance is None
    assert not start.is_bounded


def test_no_best_row_where_comparisons_want_both_ends() -> None:
    started = o.join(p, SAME, p.t <= o.t)
    either = [
        (z.t > p.u, Best.GREATEST),
        (z.t < p.u, Best.LEAST),
        (z.t <= p.u, Best.LEAST),
        (~(z.t <= p.u), Best.GREATEST),
    ]
    for condition, best in either:
        found = foldings(started.anti_join(z, condition, z.t <= o.t).select(o.k, o.t).distinct())[1]
        assert found.classes.dominance is not None
        assert found.classes.dominance.best is best
    both = started.anti_join(z, (z.t > p.u) | (z.t < p.u - 5), z.t <= o.t)
    assert foldings(both.select(o.k, o.t).distinct())[1].classes.dominance is None
    # A match more takes a padded row away.
    padded = started.left_join(z, z.t <= p.u, z.t <= o.t)
    assert foldings(padded.select(o.k, o.t, ended=z.k).distinct())[1].classes.dominance is None


def test_the_later_of_two_instants_settles_to_the_other() -> None:
    pairs = o.join(p, SAME).select(o.k, o.qty, p.v, m=tg.max(o.t, p.t))
    totals = pairs.group_by(pairs.k, pairs.m).agg(sold=tg.sum(pairs.qty), last=tg.max(pairs.v))
    assert [str(one) for one in foldings(totals)] == [f"keys({name} by k) + {NOW.format(name)}" for name in "OP"]


def test_a_term_is_settled_when_neither_its_old_row_nor_its_new_one_is_to_come() -> None:
    pairs = o.join(p, SAME).select(o.k, p.v, o.t, m=tg.max(o.t, p.t))
    (term,) = foldings(pairs.group_by(pairs.k, pairs.m).agg(most=tg.max(pairs.v)))[1].terms
    assert not term.settled({"t": 6, "u": 0}, {"m": 5})
    assert term.settled({"t": 5, "u": 0}, {"m": 5})
    # A price after the order makes no row here, and would make one if the order's instant stood for its own.
    only = pairs.where(pairs.m <= pairs.t)
    (term,) = foldings(only.group_by(only.k, only.m).agg(most=tg.max(only.v)))[1].terms
    assert not term.settled({"t": 10, "u": 0}, {"m": 5})


def test_an_instant_without_a_bound_stays_open_and_says_what_is_missing() -> None:
    query = p.join(o, SAME, p.u <= o.u, p.t <= o.t).group_by(o.k, o.t).agg(s=tg.sum(p.v))
    found = foldings(query)[0]
    assert stopped(found) == [
        "p.u <= o.u stays open: missing t - o.u <= c",
        "u is read by the condition o.k = p.k & p.u <= o.u & p.t <= o.t: one row per value",
    ]


def test_an_instant_that_is_bounded_by_a_promised_one_settles() -> None:
    near = o.where(o.t <= o.u + 10)
    found = foldings(near.join(p, SAME, p.t <= o.u, p.t <= o.t).group_by(o.k, o.t).agg(s=tg.sum(p.v)))[1]
    assert str(found) == "keys(P by k) + rate(P) × (9 + skew(P) + lag)"


def test_a_row_is_settled_once_it_is_in_every_case() -> None:
    near = (o.t <= o.u + 10) | ((p.u <= p.t) & (o.t <= o.u + 100))
    found = looked_up(SAME, near, p.t <= o.u, p.t <= o.t, s=tg.sum(p.v))
    looked = next(one for one in found.comparisons if "o.u" in str(one.literal.term))
    assert [looked.value({"t": 5, "u": 0}, {"t": at}) for at in (5, 50, 103, 104)] == [None, None, None, True]


def test_comparisons_do_not_settle_each_other() -> None:
    """Each would follow from the other, if that were known."""
    found = looked_up(SAME, p.u <= o.u, p.u < o.u + 1, p.t <= o.t, s=tg.sum(p.v))
    assert [one.literal.term.args[0].name for one in found.comparisons] == ["p.t"]  # type: ignore[union-attr]  # comparisons of attributes


def test_what_is_read_stands_by_name() -> None:
    pairs = o.join(p, SAME, p.t <= o.t)
    assert stopped(foldings(pairs.select(o.k, o.t, since=p.t))[1]) == [
        "t is read by the result attribute since: one row per value",
    ]
    hours = pairs.select(o.k, o.t, p.v, hour=tg.ceil(p.t, 60))
    assert stopped(foldings(hours.group_by(hours.k, hours.t, hours.hour).agg(s=tg.sum(hours.v)))[1]) == [
        "ceil(t, 60) is read by the group key hour: one row per value",
    ]
    mixed = foldings(pairs.group_by(o.k, o.t).agg(least=tg.min(o.t - p.t)))[1]
    assert stopped(mixed) == ["min(o.t - p.t) reads t beside other streams"]


def test_an_argument_of_both_tells_classes_apart() -> None:
    assert looked_up(SAME, p.t <= o.t, different=tg.count_distinct(p.v)).classes.payload == ()
    mixed = o.join(p, SAME, p.t <= o.t).select(o.k, o.t, paid=o.qty * p.v)
    assert "keys(P by k, v) +" in str(foldings(mixed.group_by(mixed.k, mixed.t).agg(least=tg.min(mixed.paid)))[1])
    found = looked_up(SAME, p.t <= o.t, paid=tg.sum(o.qty * p.v), different=tg.count_distinct(p.u % 3))
    assert not found.is_bounded  # the values of P.u are instants
    found = looked_up(SAME, p.t <= o.t, paid=tg.sum(o.qty * p.v))
    assert str(found) == f"keys(P by k, v) + {NOW.format('P')}"
    assert found.classes.payload == ()


def test_an_argument_of_a_padded_row_tells_classes_apart() -> None:
    """It may have a value where the row is NULL; an attribute has none."""
    found = looked_up(SAME, p.t <= o.t, how="left", least=tg.min(tg.coalesce(p.v, 7)), most=tg.max(p.v))
    assert str(found) == f"keys(P by k, coalesce(v, 7)) + {NOW.format('P')}"
    assert [one.aggregate.name for one in found.classes.payload] == ["most"]


def test_an_argument_that_is_null_of_a_padded_row_is_payload() -> None:
    """As a sum of some of the rows is: a condition on a padded row is not true."""
    found = looked_up(SAME, p.t <= o.t, how="left", some=tg.sum(p.v, filter=p.v > 3), rows=tg.count(filter=p.v > 3))
    assert str(found) == f"keys(P by k) + {NOW.format('P')}"
    assert [one.aggregate.name for one in found.classes.payload] == ["some", "rows"]
    found = looked_up(SAME, p.t <= o.t, how="left", unknown=tg.count(filter=p.v.is_null()))
    assert "v" in str(found).partition("+")[0]


def test_conditions_on_data_tell_classes_apart_and_of_a_rows_own_instants_the_truth_value_does() -> None:
    found = looked_up(SAME, p.t <= o.t, p.v <= o.qty, p.t <= p.u)
    assert str(found) == f"keys(P by k, v, t <= u) + {NOW.format('P')}"


def test_a_comparison_within_data_is_read() -> None:
    """Only what and, or and not combine can be settled."""
    condition = p.t <= o.t
    found = looked_up(SAME, condition, (condition == (o.qty > 3)) | (p.v == 1))
    assert not found.is_bounded


def test_nothing_is_an_instant_above_a_left_join_that_pads_it() -> None:
    padded = o.left_join(p, SAME, p.t <= o.t).where((p.t <= o.t) | (o.qty == 1))
    found = foldings(padded.group_by(o.k, o.t).agg(n=tg.count()))[1]
    assert [one.literal.step for one in found.comparisons] == [1]
    assert not found.is_bounded


def test_a_query_of_very_many_streams_is_not_asked() -> None:
    streams = [tg.stream(f"S{i}", "k bigint, t bigint", progress="t").as_(f"s{i}") for i in range(MOST_OCCURRENCES + 1)]
    query: Any = streams[0]
    folded = []
    for other in streams[1:]:
        query = query.anti_join(other, other.k == streams[0].k, other.t <= streams[0].t)
        if other in (streams[1], streams[-1]):
            folded.append([one.folds for one in tg.program(R=query).facts.queries[0].occurrences[1:]])
    assert folded == [[True], [False] * MOST_OCCURRENCES]
    assert reasons(query) == [None, *[("the query has more than 16 occurrences of streams",)] * MOST_OCCURRENCES]
    notes = tg.program(R=query).notes()
    assert {note.because for note in notes} == {
        ("nor is it folded: the query has more than 16 occurrences of streams",),
    }


def reasons(query: Any) -> list[tuple[str, ...] | None]:
    """Why rows of each occurrence are stored one by one, as the facts and the report say."""
    program = tg.program(R=query)
    facts = program.facts.queries[0]
    reported = program.explain().to_dict()["queries"][0]["occurrences"]
    found = [one.not_folded for one in facts.occurrences]
    assert [one.get("not_folded") for one in reported] == [None if one is None else list(one) for one in found]
    return found


def test_a_query_with_too_many_temporal_cases_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    query = o.join(p, SAME, p.t <= o.t).group_by(o.k, o.t).agg(v=tg.last(p.v, by=p.t))
    assert reasons(query) == [None, ()]

    def refused(question: _Question, node: Node) -> Complement:
        raise QueryError("TG150", "too many zones")

    monkeypatch.setattr(_Question, "complement", refused)
    assert reasons(query) == [None, ("a comparison that is to be settled has too many temporal cases",)]


def test_rows_of_a_recursion_fold_as_others_do() -> None:
    found = tg.result("R", "k bigint, t bigint", progress="t")
    seen = found.as_("r")
    begun = o.select(o.k, o.t)
    again = o.join(seen, o.k == seen.k, seen.t < o.t).select(o.k, o.t).distinct()
    program = tg.program(tg.query(found, begun), tg.query(found, again))
    facts = next(query for query in program.facts.queries if len(query.occurrences) == 2)
    assert [one.not_folded for one in facts.occurrences] == [None, ()]
    assert facts.occurrences[1].state == "keys(R by k) + rate(R) × (skew(R) + lag)"


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_condition_of_a_look_up_is_asked_for_its_true_side_alone(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side needs the zones of another query, and rows that are kept for ever never come to be settled false."""
    asked: list[Node] = []

    def counted(question: _Question, node: Node) -> Complement:
        asked.append(node)
        return complement(question, node)

    monkeypatch.setattr(_Question, "complement", counted)
    query: Any = o
    values = {}
    for number in range(4):
        price = tg.stream("P", "k bigint, t bigint, v bigint", progress="t").as_(f"p{number}")
        query = query.join(price, o.k == price.k, price.t <= o.t, how=how)
        values[f"v{number}"] = tg.last(price.v, by=price.t)
    facts = tg.program(R=query.group_by(o.k, o.t).agg(**values)).facts.queries[0]
    assert [one.folds for one in facts.occurrences] == [False, *[True] * 4]
    assert len(asked) == 4
    comparisons = [one for occurrence in facts.occurrences[1:] for one in occurrence.folding.comparisons]  # type: ignore[union-attr]  # they fold
    assert [type(one.false.bound) for one in comparisons] == [Unbounded] * 4


def test_tables_and_rows_below_operators_in_order_do_not_fold() -> None:
    names = tg.table("Names", "k bigint, name string").as_("n")
    facts = tg.program(R=o.join(names, o.k == names.k)).facts.queries[0]
    assert folding(facts.query.node, 1, {}, ("t",), Latencies.among(facts.propagation)) is None
    before = o.over(by="k", order="t", before=tg.lag(o.qty))
    assert why_unknown(before._node, 0) == "an operator that gathers rows in order reads it"
