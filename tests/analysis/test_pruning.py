"""Which zones go and which must stay (rule R7), case by case; random expressions are in test_federation."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.pruning import maximal, prune
from tidegate.analysis.zones.zone import Copy, Layout, Zone

EVERY = (0, 1, 2)


def zone(speaking: Iterable[int], *bounds: tuple[str, str, int]) -> Zone:
    """A zone over the attribute a and the instants x0, x1, x2 of the occurrences that it speaks of."""
    rows: tuple[Copy, ...] = (("v", 1, "a"), *(("x", i, "t") for i in speaking))
    layout = Layout(rows, {"a": 0, **{f"x{row[1]}": k for k, row in enumerate(rows) if row[0] == "x"}})
    found = Zone.free(layout).conjoin(Bound(*bound) for bound in bounds)
    assert isinstance(found, Zone)
    plain = Layout(rows, {"a": 0})
    return found.arranged(plain).ignoring(i for i in EVERY if i not in set(speaking))


def pruned(*zones: Zone) -> list[int]:
    kept = prune(list(zones), ("a",), len(EVERY))
    return [k for k, one in enumerate(zones) if any(one is other for other in kept)]


def test_a_contained_zone_with_equal_flags_goes() -> None:
    narrow, wide = zone((0, 1), ("a", "x0", 1), ("x0", "a", 0)), zone((0, 1), ("a", "x0", 2))
    assert pruned(narrow, wide) == [1]
    assert pruned(wide, narrow, zone((0, 1), ("a", "x0", 2))) == [0]


def test_a_zone_that_alone_speaks_of_an_occurrence_stays() -> None:
    assert pruned(zone((0,)), zone((0, 1), ("x1", "a", 5))) == [0, 1]


def test_zones_that_ignore_more_cover_one_together() -> None:
    both = zone((0, 1, 2), ("x1", "a", 5), ("x2", "a", 6))
    assert pruned(zone((0,)), zone((0, 1), ("x1", "a", 5)), zone((0, 2), ("x2", "a", 6)), both) == [0, 1, 2]


def test_but_only_where_each_of_them_contains_it() -> None:
    both = zone((0, 1, 2), ("x1", "a", 5), ("x2", "a", 6))
    assert pruned(zone((0,)), zone((0, 1), ("x1", "a", 4)), zone((0, 2), ("x2", "a", 6)), both) == [0, 1, 2, 3]


def test_a_zone_that_ignores_less_covers_nothing() -> None:
    """The partner rule asks for partners in every occurrence that a zone speaks of: such a cover would lose rows."""
    assert pruned(zone((0,), ("x0", "a", 5)), zone((0, 1), ("x0", "a", 5))) == [0, 1]


def test_maximal_keeps_the_first_of_equal_matrices() -> None:
    matrices = [zone((0,), ("x0", "a", c)).matrix for c in (3, 5, 5, 4)]
    assert maximal(matrices) == [1]
    incomparable = [zone((0,), ("x0", "a", 3)).matrix, zone((0,), ("a", "x0", 3)).matrix]
    assert maximal(incomparable) == [0, 1]
