"""Keep, relevance and pass: the conditions, the row form and the segment form say the same (rules R13 to R15)."""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest

from tests.analysis.build import le, lt, plus, scan, span, stream
from tests.analysis.test_federation import Maker, named
from tidegate.algebra.nodes import Imbed, Join, Product, Select
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.semantics import evaluate_term
from tidegate.algebra.terms import FALSE, TRUE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, BOOLEAN, DATE, TIMESTAMP, DataType
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.pass_ import pass_condition, passes
from tidegate.analysis.state.keep import Keep, keep, kept_of
from tidegate.analysis.state.relevance import relevance

STEPS: tuple[Extended, ...] = (-INF, 0, 1, 2, 3, 4, 5, INF)


def true(term: Term, definition: StreamDef, row: tuple[object, ...]) -> bool:
    values = dict(zip(definition.schema.names, row, strict=True))
    return evaluate_term(term, values, definition.schema) is True  # type: ignore[arg-type]  # integers all


def test_conditions_equal_their_row_form_on_random_expressions() -> None:
    kept = relevant = rows = 0
    for seed in range(250):
        maker = Maker(seed)
        found = federation(maker.node(3))
        promised = tuple(a for a in found.attributes if maker.random.random() < 0.8)
        for i, definition in enumerate(found.occurrences):
            keeping = keep(found, i, promised)
            relevance_ = relevance(keeping)
            for _ in range(4):
                old = {a: maker.random.choice(STEPS) for a in promised}
                new = {a: max(old[a], maker.random.choice(STEPS)) for a in promised}
                keep_term, relevance_term = keeping.condition(old), relevance_.condition(old, new)
                assert term_type(keep_term, definition.schema) == BOOLEAN
                assert term_type(relevance_term, definition.schema) == BOOLEAN
                for row in maker.rows()[definition.name]:
                    values = named(row, definition.schema)
                    stays, matters = keeping.row(values, old), relevance_.row(values, old, new)
                    assert true(keep_term, definition, row) == stays
                    assert true(relevance_term, definition, row) == matters
                    assert stays or not matters
                    rows, kept, relevant = rows + 1, kept + stays, relevant + matters
    assert 0 < relevant < kept < rows


def test_a_segment_that_goes_holds_no_row_that_stays() -> None:
    went = 0
    for seed in range(250):
        maker = Maker(seed)
        found = federation(maker.node(3))
        for i, definition in enumerate(found.occurrences):
            keeping = keep(found, i, found.attributes)
            relevance_ = relevance(keeping)
            old = {a: maker.random.choice(STEPS) for a in found.attributes}
            new = {a: max(old[a], maker.random.choice(STEPS)) for a in found.attributes}
            segment = [named(row, definition.schema) for _ in range(2) for row in maker.rows()[definition.name]]
            if not segment:
                continue
            bounds = {x: (min(r[x] for r in segment), max(r[x] for r in segment)) for x in segment[0]}
            if not keeping.segment(bounds, old):
                went += 1
                assert not any(keeping.row(row, old) for row in segment)
            if not relevance_.segment(bounds, old, new):
                went += 1
                assert not any(relevance_.row(row, old, new) for row in segment)
            assert keeping.segment({}, old) or not keeping.segment(bounds, old), "knowing less never drops more"
    assert went > 100


def test_a_segment_of_one_instant_goes_exactly_when_its_row_does() -> None:
    """With one temporal attribute and a segment of equal rows, the segment form is the row form."""
    left, right = scan(stream("L"), "l"), scan(stream("R"), "r")
    found = federation(Join(left, right, conjunction([le("l.t", "r.t"), le("r.t", plus("l.t", 3))]), "inner"))
    for i in range(2):
        keeping = keep(found, i, ("l.t", "r.t"))
        relevance_ = relevance(keeping)
        for at, p, q, reach in product(range(-4, 5), range(-3, 3), range(-3, 3), range(3)):
            old, bounds = {"l.t": p, "r.t": q}, {"t": (at, at)}
            new = {"l.t": p + reach, "r.t": q + reach}
            assert keeping.segment(bounds, old) == keeping.row({"t": at}, old)
            assert relevance_.segment(bounds, old, new) == relevance_.row({"t": at}, old, new)


def test_keep_uses_the_greatest_and_relevance_the_least_instant_of_a_segment() -> None:
    left, right = scan(stream("L"), "l"), scan(stream("R"), "r")
    found = federation(Join(left, right, conjunction([le("l.t", "r.t"), le("r.t", plus("l.t", 3))]), "inner"))
    keeping = keep(found, 0, ("r.t",))
    assert keeping.segment({"t": (0, 8)}, {"r.t": 10})
    assert not keeping.segment({"t": (0, 7)}, {"r.t": 10})
    relevance_ = relevance(keeping)
    assert relevance_.segment({"t": (12, 99)}, {"r.t": 10}, {"r.t": 12})
    assert not relevance_.segment({"t": (13, 99)}, {"r.t": 10}, {"r.t": 12})


def test_relevance_needs_an_attribute_that_advanced() -> None:
    found = federation(scan(stream("S"), "s"))
    relevance_ = relevance(keep(found, 0, ("s.t",)))
    assert relevance_.condition({"s.t": 5}, {"s.t": 5}) == FALSE
    assert relevance_.condition({"s.t": 5}, {"s.t": 9}) == conjunction(
        [call("gt", Attr("t"), Lit(5, BIGINT)), call("le", Attr("t"), Lit(9, BIGINT))]
    )


def test_progress_of_infinity_folds() -> None:
    found = federation(scan(stream("S"), "s"))
    keeping = keep(found, 0, ("s.t",))
    assert keeping.condition({"s.t": -INF}) == keeping.condition({}) == TRUE
    assert keeping.condition({"s.t": INF}) == FALSE
    assert relevance(keeping).condition({"s.t": -INF}, {"s.t": INF}) == TRUE
    assert relevance(keeping).condition({}, {"s.t": INF}) == TRUE
    assert relevance(keeping).condition({"s.t": -INF}, {"s.t": -INF}) == FALSE


def test_a_condition_leaves_out_what_the_stream_declares_and_what_others_imply() -> None:
    """`t <= u` is declared; `u + 3 > p` follows from `t + 3 > p` with it."""
    declared = stream("S", ("t", "u"), relations=le("t", "u"))
    left, right = scan(declared, "s"), scan(stream("R"), "r")
    joined = Join(left, right, conjunction([le("s.u", "r.t"), le("r.t", plus("s.t", 3))]), "inner")
    keeping = keep(federation(joined), 0, ("r.t",))
    # The join implies u <= t + 3, which the stream does not declare.
    assert keeping.condition({"r.t": 10}) == conjunction([le("u", plus("t", 3)), call("gt", Attr("t"), Lit(7, BIGINT))])


@pytest.mark.parametrize(("type_", "step"), [(TIMESTAMP, span(3)), (DATE, Lit(3, BIGINT)), (BIGINT, Lit(3, BIGINT))])
def test_conditions_are_well_typed_for_every_type_of_time(type_: DataType, step: Lit) -> None:
    s = stream("S", ("t", "u"), type_=type_)
    node = Select(scan(s, "s"), conjunction([le("s.t", "s.u"), le("s.u", call("add", Attr("s.t"), step))]))
    found = federation(Imbed(node, "a", call("add", Attr("s.u"), step)))
    keeping = keep(found, 0, found.attributes)
    p = {"s.t": 5, "s.u": 6, "a": 9}
    term = keeping.condition(p)
    assert term_type(term, s.schema) == BOOLEAN
    new = {a: value + 4 for a, value in p.items()}
    assert term_type(relevance(keeping).condition(p, new), s.schema) == BOOLEAN
    for t, u in product(range(12), repeat=2):
        assert true(term, s, (t, u, 0)) == keeping.row({"t": t, "u": u}, p)


def test_an_occurrence_that_every_zone_ignores_keeps_nothing() -> None:
    s = Keep(stream("S"), (), (), ())
    assert s.condition({"a": 1}) == FALSE
    assert not s.row({"t": 0}, {"a": -INF})
    assert s.describe() == "never"


def test_pass_condition_equals_its_row_form() -> None:
    schema = stream("Q", ("a", "b"), ()).schema
    chooser = random.Random(7)
    for _ in range(300):
        old = {a: chooser.choice(STEPS) for a in schema}
        new = {a: max(old[a], chooser.choice(STEPS)) for a in schema}
        term = pass_condition(schema, old, new)
        for a, b in product(range(-1, 7), repeat=2):
            expected = any(v <= new[n] for n, v in (("a", a), ("b", b))) and a > old["a"] and b > old["b"]
            assert passes({"a": a, "b": b}, old, new) == expected
            assert (evaluate_term(term, {"a": a, "b": b}, schema) is True) == expected


def test_each_row_passes_once() -> None:
    """Whatever the steps, a row below the last progress passes in exactly one increment."""
    chooser = random.Random(11)
    for _ in range(100):
        steps = sorted(chooser.choices(range(8), k=6))
        other = sorted(chooser.choices(range(8), k=6))
        history: list[dict[str, Extended]] = [{"a": -INF, "b": -INF}]
        for x, y in zip(steps, other, strict=True):
            history.append({"a": x, "b": y})
        for a, b in product(range(8), repeat=2):
            count = sum(passes({"a": a, "b": b}, old, new) for old, new in pairwise(history))
            assert count == (a <= steps[-1] or b <= other[-1])


def test_a_static_result_passes_whole() -> None:
    assert pass_condition(stream("Q").schema, {}, {}) == TRUE


def test_a_self_join_keeps_each_side_for_itself() -> None:
    s = stream("S")
    found = federation(
        Select(Product(scan(s, "a"), scan(s, "b")), conjunction([lt("a.t", "b.t"), le("b.t", plus("a.t", 9))]))
    )
    first, second = (keep(found, i, ("b.t",)) for i in range(2))
    assert first.describe() == "t + 9 > p(b.t)"
    assert second.describe() == "t > p(b.t)"


def test_what_a_part_lets_pass_need_not_be_asked_again() -> None:
    """The join implies `u <= t + 3`. A part that selects by it lets no others pass; one that does not says nothing of
    it.
    """
    s = scan(stream("S", ("t", "u")), "s")
    near = le("s.u", plus("s.t", 3))
    keeping = keep(
        federation(Join(s, scan(stream("R"), "r"), conjunction([near, le("s.t", "r.t")]), "inner")), 0, ("r.t",)
    )
    assert kept_of(keeping, Select(s, near), 0) == TRUE
    assert kept_of(keeping, s, 0) == le("u", plus("t", 3))


def test_a_segment_begins_to_matter_until_results_get_beyond_its_greatest_instant() -> None:
    """A row of L matters to all later results of R: from the next one on, which is at p + 1 at the earliest."""
    found = federation(Join(scan(stream("L"), "l"), scan(stream("R"), "r"), le("l.t", "r.t"), "inner"))
    relevance_ = relevance(keep(found, 0, ("r.t",)))
    assert relevance_.may_change({"t": (0, 8)}, {"r.t": 6})
    assert not relevance_.may_change({"t": (0, 8)}, {"r.t": 7})
