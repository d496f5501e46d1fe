"""What open searches have found so far is what was put there, whatever has gone, grown or been packed since."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidegate.runtime.ordered.sequences import nodes
from tidegate.runtime.ordered.sequences.nodes import NewNodes, NodeArrays

Known = dict[int, dict[int, tuple[int, int]]]


@pytest.mark.parametrize("loose", [0, 40, 4096])
@pytest.mark.parametrize("seed", range(5))
def test_nodes_keep_their_numbers(seed: int, loose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LOOSE", loose)
    rng, arrays, known = random.Random(seed), NodeArrays(2), Known()
    for step in range(60):
        if step % 10 == 0:
            arrays.grow(len(known) + 3)
            known |= {partition: {} for partition in range(len(known), len(known) + 3)}
        chosen = sorted(rng.sample(sorted(known), rng.randint(1, len(known))))
        new = _drawn(rng, [known[partition] for partition in chosen], step)
        # An increment that has failed behind it is done again.
        for _ in range(rng.choice((1, 1, 2))):
            arrays.hold(np.array(chosen), new)
        assert _held(arrays) == known
        assert arrays.height == sum(map(len, known.values()))
        assert arrays._used <= 3 * arrays.height + loose or not arrays.height


def test_places_without_nodes_are_few() -> None:
    """Of a partition whose nodes come and go as of many."""
    arrays = NodeArrays(1)
    arrays.grow(2)
    for at in range(0, 200_000, 100):
        rows = np.arange(at, at + 100).reshape(-1, 1)
        first, behind, count = (np.array([value] * 2) for value in (max(at - 50, 0), at, 100))
        arrays.hold(np.array([0, 1]), NewNodes(first, behind, count, np.concatenate([rows, rows])))
    assert arrays.nbytes < 8 * (3 * 300 + nodes.LOOSE) + 1000
    assert len(arrays.table) < 2 * (3 * 300 + nodes.LOOSE)


def _drawn(rng: random.Random, known: list[dict[int, tuple[int, int]]], step: int) -> NewNodes:
    """Some new nodes of these partitions, which lose some of their first ones; or others from 0 on."""
    first, behind, count, rows = [], [], [], []
    for its in known:
        end = max(its, default=-1) + 1
        begin = rng.randint(min(its, default=0), end)
        if rng.random() < 0.2:
            begin = end = 0
        added = rng.choice((0, 1, 2, 9))
        kept = {number: node for number, node in its.items() if begin <= number < end}
        its.clear()
        its.update(kept)
        for number in range(end, end + added):
            its[number] = (step, rng.randrange(1000))
            rows.append(its[number])
        first.append(begin)
        behind.append(end)
        count.append(added)
    return NewNodes(np.array(first), np.array(behind), np.array(count), np.array(rows, dtype=np.int64).reshape(-1, 2))


def _held(arrays: NodeArrays) -> Known:
    places = zip(arrays.at, arrays.first, arrays.end, strict=True)
    return {
        partition: {
            number: (int(node[0]), int(node[1]))
            for number, node in zip(range(first, end), arrays.table[at + first : at + end], strict=True)
        }
        for partition, (at, first, end) in enumerate(places)
    }
