"""Keep and relevance as numbers: the same as by the definitions, and shared by occurrences of one shape."""

from __future__ import annotations

import copy

import pytest

import tidegate as tg
from tests.analysis.build import le, plus, scan, stream
from tests.analysis.test_federation import Maker
from tidegate.algebra.nodes import Join, Product
from tidegate.algebra.terms import FALSE, Term, conjunction, conjuncts
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DATE, TIMESTAMP, DataType
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.federation.views import View
from tidegate.analysis.state import keep as keep_module
from tidegate.analysis.state import relevance as relevance_module
from tidegate.analysis.state import thresholds
from tidegate.analysis.state.keep import Keep, keep
from tidegate.analysis.state.relevance import Relevance, can_pass, relevance
from tidegate.analysis.state.thresholds import Extents

STEPS: tuple[Extended, ...] = (-INF, -1, 0, 1, 2, 3, 4, 5, INF)


def near(left: str, right: str, one: str, other: str, most: int = 3, type_: DataType | None = None) -> Keep:
    """Of rows of the left stream that are joined with those of the right one, up to so many ticks later."""
    made = (stream(name) if type_ is None else stream(name, type_=type_) for name in (left, right))
    ones, others = (scan(definition, alias) for definition, alias in zip(made, (one, other), strict=True))
    later: list[Term] = [le(f"{one}.t", f"{other}.t")]
    if type_ is None:
        later.append(le(f"{other}.t", plus(f"{one}.t", most)))
    return keep(federation(Join(ones, others, conjunction(later), "inner")), 0, (f"{other}.t",))


def test_occurrences_that_differ_in_names_alone_have_the_same() -> None:
    """The very same, so that they are told to be without a comparison."""
    first, second, other = near("L", "R", "l", "r"), near("A", "B", "x", "y"), near("L", "R", "l", "r", most=4)
    assert first.at({"r.t": 5}) is second.at({"y.t": 5})
    assert first.condition({"r.t": 5}) is second.condition({"y.t": 5, "x.t": 7})
    assert first.at({"r.t": 5}) is not first.at({"r.t": 6})
    assert first.condition({"r.t": 5}) != other.condition({"r.t": 5})
    old, new = {"r.t": 5}, {"r.t": 8}
    assert relevance(first).at(old, new) is relevance(second).at({"y.t": 5}, {"y.t": 8})
    assert relevance(first).at(old, new) is not relevance(first).at({"r.t": 6}, new)


def test_instants_of_another_type_have_others() -> None:
    """The numbers are the same, and what a condition compares is not."""
    first, second = (near("L", "R", "l", "r", type_=type_) for type_ in (DATE, TIMESTAMP))
    terms = [relevance(one).condition({"r.t": 5}, {"r.t": 8}) for one in (first, second)]
    assert terms[0] != terms[1]


def test_what_a_stream_declares_is_not_asked_of_its_rows() -> None:
    """Of rows for which the query says the same it is, although their views are alike."""
    right = scan(stream("R"), "r")
    soon: list[Term] = [le("s.t", "r.t"), le("r.t", plus("s.t", 3))]
    declaring, plain = stream("S", ("t", "u"), relations=le("t", "u")), stream("P", ("t", "u"))
    first = keep(federation(Join(scan(declaring, "s"), right, conjunction(soon), "inner")), 0, ("r.t",))
    selecting = conjunction([*soon, le("s.t", "s.u")])
    second = keep(federation(Join(scan(plain, "s"), right, selecting, "inner")), 0, ("r.t",))
    assert [view.bounds for view in first.views] == [view.bounds for view in second.views]
    assert len(conjuncts(second.condition({"r.t": 5}))) > len(conjuncts(first.condition({"r.t": 5})))


def test_results_that_lie_further_apart_are_of_another_shape() -> None:
    """Nothing relates the rows of S to the result, and which results can pass differs all the same."""
    old: dict[str, Extended] = {"l.t": 5, "r.t": 9}
    found = []
    for most in (3, 4):
        pairs = Join(
            scan(stream("L"), "l"),
            scan(stream("R"), "r"),
            conjunction([le("l.t", "r.t"), le("r.t", plus("l.t", most))]),
            "inner",
        )
        mattering = relevance(keep(federation(Product(scan(stream("S"), "s"), pairs)), 0, ("l.t", "r.t")))
        found.append(mattering.condition(old, {"l.t": 6, "r.t": 9}))
    assert found[0] == FALSE
    assert found[1] != FALSE


def may_stay(view: View, bounds: Extents, p: dict[str, Extended]) -> bool:
    """The definition: the best row that a segment could hold fits and is yet to pass."""
    least = {x: bounds[x][0] if x in bounds else -INF for x in view.columns}
    greatest = {x: bounds[x][1] if x in bounds else INF for x in view.columns}
    return all(
        min((greatest[x] + view.ahead(x, a) for x in view.columns), default=INF) > p[a] and p[a] != INF
        for a in view.promised
    ) and all(least[y] - greatest[x] <= view.within(x, y) for x in view.columns for y in view.columns)


def may_matter(view: View, bounds: Extents, old: dict[str, Extended], new: dict[str, Extended]) -> bool:
    """The definition: such a row is early enough for a result that can pass."""
    least = {x: bounds[x][0] if x in bounds else -INF for x in view.columns}
    return may_stay(view, bounds, old) and (
        not view.promised
        or any(
            all(least[x] - view.behind(a, x) <= new[a] for x in view.columns) and can_pass(view, a, old, new)
            for a in view.promised
        )
    )


def test_what_is_known_of_one_is_right_for_all_of_its_shape() -> None:
    """All are held, so that later ones find what earlier ones have asked for."""
    held: list[tuple[Keep, Relevance]] = []
    stayed = matters = shared = 0
    for seed in range(250):
        maker = Maker(seed)
        found = federation(maker.node(2))
        promised = tuple(a for a in found.attributes if maker.random.random() < 0.8)
        for i in range(len(found.occurrences)):
            keeping = keep(found, i, promised)
            shared += any(keeping.known is one.known for one, _ in held)
            mattering = relevance(keeping)
            held.append((keeping, mattering))
            for _ in range(8):
                old = {a: maker.random.choice(STEPS) for a in promised}
                new = {a: max(old[a], maker.random.choice(STEPS)) for a in promised}
                columns = [x for view in keeping.views[:1] for x in view.columns]
                bounds: dict[str, tuple[int, int]] = {}
                for x in columns:
                    if maker.random.random() < 0.9:
                        low = maker.random.randint(-2, 6)
                        bounds[x] = (low, low + maker.random.randint(0, 3))
                stays = any(may_stay(view, bounds, old) for view in keeping.views)
                matter = any(may_matter(view, bounds, old, new) for view in keeping.views)
                assert keeping.segment(bounds, old) == stays
                assert mattering.segment(bounds, old, new) == matter
                assert keeping.condition(old) == keeping._at(old).condition
                assert mattering.condition(old, new) == mattering._at(old, new).condition
                stayed, matters = stayed + stays, matters + matter
    assert 0 < matters < stayed < 8 * len(held)
    assert shared


def test_so_many_are_known_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "MOST", 4)
    keeping = near("L", "R", "l", "r", most=77)
    for p in range(20):
        assert keeping.at({"r.t": p}) is keeping.at({"r.t": p})
        assert len(keeping.known._known) <= 4


def test_copies_for_other_processes_take_along_what_they_say_and_not_what_is_known() -> None:
    keeping = near("L", "R", "l", "r", most=78)
    asked = keeping.at({"r.t": 5})
    copied = copy.deepcopy(keeping)
    assert not copied.known._known
    assert copied.condition({"r.t": 5}) == asked.condition
    assert copied.segment({"t": (0, 1)}, {"r.t": 5}) == asked.segment({"t": (0, 1)})


def conditions_of_a_batch(queries: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many views are made into conditions in the third batch of a program of so many joins, of a shape of its
    own.
    """
    made = 0

    def counting(*given: object) -> object:
        nonlocal made
        made += 1
        return build(*given)  # type: ignore[arg-type]  # as it is called

    build = keep_module.keep_condition
    events = tg.stream("E", "k bigint, t bigint, v double", progress="t")
    a, b = events.as_("a"), events.as_("b")
    pairs = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + queries)
    found = {f"Q{n}": pairs.where(a.v > n / 10).select(t=b.t, v=b.v) for n in range(queries)}
    with tg.program(**found).session() as session, monkeypatch.context() as patched:
        for number in range(3):
            session.push("E", [(k, 10 * number + k, 0.5) for k in range(5)])
            session.advance("E", {"t": 10 * number + 5})
            if number == 2:
                for module in (keep_module, relevance_module):
                    patched.setattr(module, "keep_condition", counting)
            session.step()
    return made


def test_conditions_of_a_batch_do_not_grow_with_queries_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (conditions_of_a_batch(queries, monkeypatch) for queries in (2, 12))
    assert 0 < many <= few
