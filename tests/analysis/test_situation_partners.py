"""Which situations the partner rule frees sooner, and by which bounds, computed by hand (rule R29)."""

from __future__ import annotations

import tidegate as tg
from tidegate.algebra.ordered.match.node import Match
from tidegate.analysis.ordered.match.partners import SituationPartners, situation_partners

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
on = readings.partition_by("k").derive(
    A=tg.situation(readings.x == 1), B=tg.situation(readings.x == 2, at_least=2), C=tg.situation(readings.x == 3)
)


def rule(relation: tg.Relation, *, always: bool = False) -> SituationPartners | None:
    node = relation._node
    assert isinstance(node, Match)
    return situation_partners(node, always=always)


def freed(relation: tg.Relation, *, always: bool = False) -> dict[str, str]:
    found = rule(relation, always=always)
    return {} if found is None else {"".join(one.symbols): "".join(one.partners) for one in found.freed}


def test_who_waits_for_whom() -> None:
    assert freed(tg.match(on.A.before(on.B), within=50)) == {"B": "A"}  # any later B may be A's
    assert freed(tg.match(on.A.overlaps(on.B), on.B.before(on.C), within=50)) == {"A": "B", "B": "A", "C": "AB"}
    assert freed(tg.match(on.A.before(on.B), on.B.overlaps(on.C), within=50)) == {"B": "AC", "C": "AB"}
    assert freed(tg.match(on.A.te - on.A.ts >= 2, within=50)) == {"A": ""}
    assert freed(tg.match(on.A.te - on.A.ts >= 1, within=2)) == {"A": ""}  # at once, not a tick later


def test_it_is_used_where_it_halves_the_wait() -> None:
    within = tg.match(on.A.before(on.B), on.B.ts - on.A.te <= 25, on.B.before(on.C), within=50)
    assert freed(within) == {"B": "A", "C": "AB"}
    assert freed(within, always=True) == {"A": "B", "B": "AC", "C": "AB"}
    assert freed(tg.match(on.A.before(on.B), on.B.ts - on.A.te <= 24, on.B.before(on.C), within=50))["A"] == "B"


def test_no_situation_goes_before_it_has_ended() -> None:
    """A begins before B ends. B goes as it ends anyway, so the rule frees A only."""
    assert freed(tg.match(on.A.overlaps(on.B), on.B.te - on.A.te <= 1), always=True) == {"A": "B"}


def test_a_symbol_by_two_names_needs_both_freed() -> None:
    later = on.A.as_("Z")
    assert freed(tg.match(on.A.before(later), within=50)) == {}
    assert freed(tg.match(on.A.before(later), later.ts - on.A.te <= 5, within=50)) == {"AZ": "ZA"}


def test_bounds_are_those_of_all_matches() -> None:
    found = rule(tg.match(on.A.overlaps(on.B) | on.A.meets(on.B), within=50))
    assert found is not None
    a_ts, a_te, b_ts, b_te = range(4)
    assert found.bounds[a_te][b_ts] == 0  # meets; one tick less where it overlaps
    assert found.bounds[a_ts][a_te] == 50  # A has ended when the match is certain, or B has begun then
    assert found.bounds[b_te][b_ts] == -2  # the least duration
    assert found.bounds[a_te][b_te] is None
    assert found.bounds[b_ts][a_ts] == -1
    # Of alternatives each bound is the widest.
    either = rule(tg.match((on.A.before(on.B) & (on.B.ts - on.A.te <= 3)) | on.A.after(on.B), within=50), always=True)
    assert either is not None
    assert either.bounds[a_te][b_ts] == 3
