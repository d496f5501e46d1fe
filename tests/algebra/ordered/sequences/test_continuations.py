"""What is called certain of random row patterns, judged by all rows that may follow, and its instants by steps of one.

The judge knows the matches over all rows and nothing of the rule.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.properties.directed_sequences import DirectedFamily
from tests.shards import shards
from tests.strategies.continuations import Judge, history
from tests.strategies.row_patterns import random_sequences
from tests.strategies.written_sequences import partition
from tidegate.algebra.ordered.sequences.certain import Certainty, instants_of
from tidegate.algebra.ordered.sequences.certainty.chain import Standing
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.enabled import goes_on
from tidegate.algebra.ordered.sequences.meaning import matches_of, unmatched
from tidegate.algebra.types import MAX_INSTANT

KINDS = (None, "contiguous", "next", "any")
CASES = 60


def _judge(seed: object, every: str | None, cases: int, most: int, *, groups: bool = False) -> Counter[str]:
    seen = Counter[str]()
    for number in range(cases):
        rng = random.Random(f"{seed} {every} {number}")
        node, rows = random_sequences(rng, every=every, groups=groups), history(rng)
        until = rows[-1][0] + rng.choice((0, 0, 1, 2, 4, 8))
        judge = Judge(node)
        certain = judge.certain(rows, until)
        further = judge.contradicted(rows, until, certain, most)
        assert further is None, (number, node.text(["E"]), rows, until, certain, further)
        seen["matches"] += len(certain.matches)
        seen["unmatched"] += len(certain.unmatched)
        if most < 3:
            seen["waits"] += judge.settled(rows, until, certain, most)
    return seen


@pytest.mark.parametrize("every", KINDS)
def test_what_is_certain_no_rows_to_come_change(every: str | None) -> None:
    seen = _judge("short", every, CASES, 2)
    assert seen["matches"] > CASES / 4
    # It waits in vain seldom: where conditions of rows to come contradict each other.
    assert seen["waits"] <= CASES / 6


@pytest.mark.parametrize("every", KINDS)
def test_what_is_certain_beside_groups_that_must_not_come_no_rows_change(every: str | None) -> None:
    assert _judge("groups", every, CASES, 2, groups=True)["matches"] > CASES / 6


@pytest.mark.long
@pytest.mark.parametrize("every", KINDS)
def test_what_is_certain_no_three_rows_change(every: str | None) -> None:
    assert _judge("long", every, 120, 3)["matches"] > 30
    assert _judge("long groups", every, 120, 3, groups=True)["matches"] > 20


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("every", KINDS)
def test_what_is_certain_stays_so_and_is_all_there_is_in_the_end(every: str | None, groups: bool) -> None:
    found = 0
    for number in range(CASES):
        rng = random.Random(f"instants {every} {number}")
        node, rows = random_sequences(rng, every=every, groups=groups), history(rng, 5)
        of = partition(node, rows)
        matches = matches_of(of)
        instants = instants_of(of, matches)
        rule = Certainty(Prepared(node))
        steps: dict[object, int] = {}
        before = set[object]()
        for until in [*range(rows[0][0] - 1, rows[-1][0] + rule.prepared.span + 1), None]:
            certain = rule.at(of, until)
            now = {*((match.start, match.matched) for match in certain.matches), *certain.unmatched}
            assert before <= now, (number, node.text(["E"]), rows, until)
            before = now
            for name in now:
                steps.setdefault(name, MAX_INSTANT if until is None else until)
        expected: list[tuple[object, int]] = [((m.start, m.matched), at) for m, at in instants.matches.items()]
        expected += instants.unmatched.items()
        assert dict(expected) == steps, (number, node.text(["E"]), rows)
        if node.reported.unmatched:
            assert set(instants.unmatched) == set(unmatched(of, matches))
        found += len(matches)
    assert found > CASES / 2


@pytest.mark.parametrize("every", KINDS)
def test_increments_and_rows_that_are_dropped_change_nothing(every: str | None) -> None:
    for number in range(CASES):
        rng = random.Random(f"increments {every} {number}")
        node, rows = random_sequences(rng, every=every), history(rng, 6)
        of = partition(node, rows)
        rule = Certainty(Prepared(node))
        whole = rule.between(of, None, None)
        found: set[object] = set()
        standing, since, dropped = Standing(), None, 0
        cuts: list[int | None] = [*sorted(rng.sample(range(rows[0][0], rows[-1][0] + 4), 3)), None]
        for until in cuts:
            detected = rule.between(of, since, until, standing)
            for match, at in detected.matches:
                shifted = tuple((place + dropped, variable) for place, variable in match.matched)
                name = (match.start + dropped, shifted, match.number if rule.prepared.numbers else 0, at)
                assert name not in found
                found.add(name)
            found |= {(row + dropped, at) for row, at in detected.unmatched}
            standing, since = detected.standing, until
            if until is not None:
                needed = rule.needed(of, until, standing)
                of, standing, dropped = of.after(needed), standing.without(needed), dropped + needed
        numbered = rule.prepared.numbers
        expected = {(m.start, m.matched, m.number if numbered else 0, at) for m, at in whole.matches}
        assert found == expected | set(whole.unmatched), (number, node.text(["E"]), rows, cuts)


def test_a_row_fits_where_a_word_of_the_pattern_says_so() -> None:
    """The rule goes by the states after some labels, the definition by the words of the pattern."""
    from tidegate.algebra.ordered.sequences.certainty.possible import Known
    from tidegate.algebra.ordered.sequences.certainty.runs import Skipping

    fits = 0
    for number in range(CASES * 3):
        rng = random.Random(f"fits {number}")
        node = random_sequences(rng, every="next")
        of = partition(node, history(rng, 4))
        prepared = Prepared(node)
        skipping = Skipping(Known(prepared, of, None), till_next=True)
        for match in matches_of(of):
            for length in range(1, len(match.matched) + 1):
                begun = match.matched[:length]
                for at in range(begun[-1][0] + 1, len(of.rows)):
                    expected = goes_on(of, begun, at)
                    assert (skipping.fits(begun, at) == "one") == expected, (number, node.text(["E"]), begun, at)
                    fits += expected
    assert fits > 10


@pytest.mark.parametrize("shard", shards(4))
def test_what_is_certain_no_long_rows_change(shard: int) -> None:
    """Patterns and rows that follow are drawn to change it: by least durations, counts, rows two behind, and gaps."""
    family = DirectedFamily()
    for number in range(CASES * 4)[shard::4]:
        failure = family.run(number)
        assert failure is None, failure
    assert family.tally.valid > CASES / 6
    assert family.long > CASES / 12


@pytest.mark.parametrize("kind", ["numbers", "nulls"])
def test_what_numbers_of_rows_and_null_say_no_rows_change(kind: str) -> None:
    family = DirectedFamily((kind,), (None, None, None, None, "any"), continuations=12)
    for number in range(CASES * 12):
        failure = family.run(number)
        assert failure is None, failure
    assert family.tally.valid > CASES * 3
