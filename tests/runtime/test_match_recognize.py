"""The worked examples of MATCH_RECOGNIZE, run: the engine has the rows that the examples say, in any batches, and each
match at the instant from which nothing changes it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

import tidegate as tg
from benchmarks.duckdb_patterns import PATTERNS
from tests.algebra.text.row_pattern_examples import Example, as_bag, as_printed, examples
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.sequences.definition import DETECTED
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.semantics import evaluate
from tidegate.analysis.ordered.sequences.tables import tables_of

EXAMPLES = [example for example in examples() if not example.refused]


def in_batches(example: Example, seed: int, lengths: Sequence[int]) -> list[Row]:
    """The result of batches of so many rows in order of time, of which each progress is complete."""
    read = example.read()
    node = read._node
    assert isinstance(node, Sequences)
    rng, at = random.Random(seed), example.relation().schema.names.index(node.time)
    waiting: list[tuple[Any, ...]] = sorted(example.rows, key=lambda row: cast(int, row[at]))
    with tg.program(R=read).session(threads=1) as session:
        while waiting:
            length = rng.choice(lengths)
            batch, waiting = waiting[:length], waiting[length:]
            session.push("T", rng.sample(batch, len(batch)))
            session.advance("T", (waiting[0] if waiting else batch[-1])[at] - bool(waiting))
            session.step()
            reached = session.progress["R"][DETECTED]
            assert all(row[DETECTED] <= reached for row in session.results("R"))
        session.finish()
        session.step()
        return [tuple(row.values()) for row in session.results("R")]


#: The rule of certainty follows all ways that differ in what is still to be read: here they are many.
MANY_WAYS = "trino: the last of exponentially many ways"


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=example.name, marks=[pytest.mark.long] if example.name == MANY_WAYS else [])
        for example in EXAMPLES
    ],
)
def test_examples_run(example: Example) -> None:
    """In about two batches; in many in the long form."""
    node = example.read()._node
    assert isinstance(node, Sequences)
    meant = evaluate(node, {"T": list(example.rows)})
    half = len(example.rows) // 2 + 1
    assert as_bag(in_batches(example, len(example.name), range(1, half + 1))) == as_bag(meant)
    names = node.schema.names
    select = example.select or as_printed(node)
    places = [names.index(name) for name in select]
    assert as_bag([tuple(row[place] for place in places) for row in meant]) == as_bag(example.expected)


@pytest.mark.parametrize("name", PATTERNS)
def test_kernels_search_for_the_queries_that_duckdb_measures(name: str) -> None:
    node = PATTERNS[name].matches()._node
    assert isinstance(node, Sequences)
    assert not isinstance(tables_of(node), str), tables_of(node)


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run_in_small_batches(example: Example) -> None:
    meant = evaluate(example.read()._node, {"T": list(example.rows)})
    assert as_bag(in_batches(example, len(example.name), (1, 1, 2, 5))) == as_bag(meant)
