"""Digests of pushed rows: the same for the same rows wherever they are pushed, others for others."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate.runtime.engines.embedded.digests import _WORDS, digest_of
from tidegate.runtime.ingest.ingest import Arrival
from tidegate.runtime.ingest.raw_rows import CheckedColumn, Raw
from tidegate.runtime.ingest.values import UnreadableValue

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
#: More than two sums, and a rest.
LONG = 2 * _WORDS + 77


def digest(column: pa.Array | Sequence[object]) -> str:
    return digest_of({"E": [Arrival("push", Raw({"x": column}, len(column)))]}, {})


def text(values: bytes) -> pa.Array:
    """One value that need not be UTF-8."""
    return pa.array([values], pa.large_binary()).view(pa.large_string())


def made() -> dict[str, Any]:
    """Columns of every kind that is digested in its own way."""
    numbers = np.arange(LONG)
    return {
        "integers": pa.array(numbers),
        "doubles": pa.array((numbers % 50).astype(float)),
        "booleans": pa.array(numbers % 3 == 0),
        "text": pa.array([f"value {i}" for i in range(LONG)]),
        "gaps": pa.array([None if i % 7 == 0 else i for i in range(LONG)]),
        "no values": pa.nulls(3),
        "no rows": pa.array([], pa.int64()),
        "no rows of text": pa.array([], pa.string()),
        "rows of rows": pa.array([{"a": [1]}, {"a": [2, 3]}]),
        "a list of integers": [1, None, 3],
        "a list of instants": [NOON, None, NOON + dt.timedelta(microseconds=1)],
        "integers beyond 64 bits": [2**64, 1],
        "several types": [1, 2.5, "three", {"a": [1]}],
        "text that is not UTF-8": ["\udc80"],
        "judged": CheckedColumn(pa.array(["a", None]), {1: UnreadableValue("b\\xff")}),
    }


def test_another_process_finds_the_same() -> None:
    program = (
        "from tests.runtime.test_digests import digest, made\nfor column in made().values(): print(digest(column))"
    )
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    here = [digest(column) for column in made().values()]
    assert answer.stdout.split() == here
    assert len(set(here)) == len(here)


@pytest.mark.parametrize("name", ["integers", "doubles", "booleans", "text", "gaps"])
@pytest.mark.parametrize("first", [0, 5])
def test_a_slice_is_like_a_column_by_itself(name: str, first: int) -> None:
    column = made()[name]
    alone = pa.array(column.to_pylist()[first:-3], column.type)
    assert digest(column.slice(first, len(alone))) == digest(alone)
    assert digest(column.slice(first + 1, len(alone))) != digest(alone)


@pytest.mark.parametrize("place", [0, 1, _WORDS - 1, _WORDS, 2 * _WORDS + 5, LONG - 1])
@pytest.mark.parametrize("name", ["integers", "doubles"])
def test_every_value_counts(name: str, place: int) -> None:
    values = made()[name].to_numpy().copy()
    before = digest(pa.array(values))
    values[place] += 1
    assert digest(pa.array(values)) != before


@pytest.mark.parametrize("seed", range(20))
def test_small_whole_doubles_that_change_in_several_places_are_others(seed: int) -> None:
    """All that differs are the upper twelve bits: sums of whole words would have no others."""
    random = np.random.default_rng(seed)
    found = {digest(pa.array(random.integers(0, 2, _WORDS).astype(float))) for _ in range(100)}
    assert len(found) == 100


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.long)])
def test_two_changes_of_the_highest_bits_are_seen(step: int) -> None:
    """Of truth values and of names of one length little else differs: eight bits of a sum would be left for them."""
    numbers = np.arange(_WORDS * 2)
    columns = {"truths": numbers == 7, "names": np.array([f"sensor-{i % 10}" for i in numbers])}
    for column in columns.values():
        found, others = {digest(pa.array(column))}, numbers[8::step]
        for other in others.tolist():
            moved = column.copy()
            moved[[7, other]] = column[[other, 7]]
            found.add(digest(pa.array(moved)))
        same = int(np.count_nonzero(column[others] == column[7]))
        assert len(found) == 1 + len(others) - same


def test_order_counts_and_so_do_names_and_streams() -> None:
    a, b = (Arrival("push", Raw({"x": [number]}, 1)) for number in (1, 2))
    other = Arrival("push", Raw({"y": [1]}, 1))
    made = [{"E": [a, b]}, {"E": [b, a]}, {"E": [a]}, {"F": [a]}, {"E": [other]}, {"E": [a], "F": [a]}]
    assert len({digest_of(pushed, {}) for pushed in made}) == len(made)
    assert digest_of({}, {}) == ""
    assert len({digest_of(*given) for given in (({}, {"E": "1"}), ({}, {"E": "2"}), ({"E": [a]}, {"E": "1"}))}) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [1.0]),
        ([1], [True]),
        ([1], ["1"]),
        ([dt.date(2026, 1, 1)], [dt.datetime(2026, 1, 1)]),
        ([0.0], [-0.0]),
        ([None], [0]),
        ([1, True], [1, 1]),
        (pa.array([0, None]), pa.array([None, 0])),
        (pa.array([0] * LONG), pa.array([-(2**63), *[0] * (LONG - 1)])),  # an even weight would lose its only bit
        (pa.array([1], pa.int64()), pa.array([1], pa.timestamp("us"))),
        (text(b"a\xff"), text(b"a\xfe")),
        (CheckedColumn(pa.nulls(1), {0: UnreadableValue("a")}), CheckedColumn(pa.nulls(1), {0: UnreadableValue("b")})),
    ],
)
def test_values_of_other_types_are_others(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


class Unsaid:
    def __repr__(self) -> str:
        raise ValueError


def test_values_that_can_not_be_said_are_like_no_others() -> None:
    column = [Unsaid()]
    assert digest(column) != digest(column)
