"""What kills a row before keep lets it go: rows of an anti-join's right side, and from which instants on."""

from __future__ import annotations

from typing import Any

import tidegate as tg
from tidegate.analysis.purge import _related, purge
from tidegate.analysis.state.kill import Kill, Reach
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.zone import Copy, Layout, Zone

a = tg.stream("A", "k bigint, t bigint, u bigint", progress="t").as_("a")
b = tg.stream("B", "k bigint, v bigint, w bigint", progress="v").as_("b")
c = tg.stream("C", "k bigint, t bigint", progress="t").as_("c")
PAIRS = a.where(a.t <= tg.floor(a.u, 10), a.u <= a.t + 40).join(c, a.k == c.k, a.t <= c.t, c.t <= a.t + 9)


def kills(*conditions: Any) -> list[Kill]:
    """Of a join of A and C without such rows of B; A is occurrence 0, C 1 and B 2."""
    near = b.k == a.k, a.t <= b.v, b.v <= a.t + 50
    query = PAIRS.anti_join(b, *near, *conditions).select(k=a.k, t=a.t, x=c.t)
    rules = purge(tg.program(R=query).facts.queries[0])
    assert rules is not None
    return [kill for kill in rules.cases[0].kills if kill.occurrence == 0]


def test_a_row_reaches_what_its_own_instants_and_the_progress_show() -> None:
    """The other instants of the zone, which has a rounding and another stream's, are none of its own."""
    (kill,) = kills(b.v <= c.t + 5)
    assert (kill.occurrence, kill.counterpart) == (0, 2)
    assert kill.reaches == (Reach("v", after=(("t", 5),), passed=(("t", 6), ("x", 6))),)
    assert len(kill.direct) == 3
    (kill,) = kills(c.t <= b.v + 5)
    assert kill.reaches == (Reach("v", before=(("t", -4),)),)


def test_constraints_between_left_instants_have_to_hold_in_the_zone() -> None:
    (kill,) = kills(c.t <= a.t + 9)
    assert kill.reaches == ()
    assert kills(c.t <= a.t + 8) == []


def test_what_is_no_conjunction_of_bounds_kills_nothing() -> None:
    assert kills((c.t <= b.v) | (c.t <= b.w)) == []
    assert kills(c.t <= tg.floor(b.v, 10)) == []
    assert kills(c.k == b.w) == []


def test_the_rule_pays_where_every_case_has_a_killer_of_the_row() -> None:
    """Whichever other rows are killed, too."""
    query = PAIRS.anti_join(b, a.t <= b.v, b.v <= c.t + 5, b.v <= a.t + 50).select(k=a.k, t=a.t, x=c.t)
    rules = purge(tg.program(R=query).facts.queries[0])
    assert rules is not None
    assert {kill.occurrence for case in rules.cases for kill in case.kills} == {0, 1}
    assert (rules.kill_pays(0), rules.kill_pays(1), rules.kill_pays(2)) == (True, True, False)


def test_a_condition_over_all_attributes_of_both_is_checked_as_it_is() -> None:
    """It looks at both rows and nothing else, so nothing has to be concluded from their instants."""
    own, other = tg.stream("A", "t bigint", progress="t").as_("a"), tg.stream("B", "v bigint", progress="v").as_("b")
    rules = purge(tg.program(R=own.anti_join(other, own.t <= other.v, other.v <= own.t + 50)).facts.queries[0])
    assert rules is not None
    assert {(len(kill.direct), kill.reaches) for case in rules.cases for kill in case.kills} == {(2, ())}


def test_of_many_streams_those_are_partners_between_whose_instants_something_is_stated() -> None:
    """None is a partner of its own, whatever is stated of its instants."""
    rows: tuple[Copy, ...] = (("x", 0, "t"), ("x", 0, "u"), ("x", 1, "t"), ("x", 2, "t"))
    layout = Layout(rows, {"t": 0, "u": 1, "b": 2, "c": 3})
    zone = Zone.free(layout).conjoin([Bound("u", "t", 5), Bound("b", "u", 3)])
    assert isinstance(zone, Zone)
    assert _related(zone, (0, 1, 2)) == [(0, 1), (1, 0)]
