"""Shards of settled rows: rows of a class meet in one of them, so that each fold is of few rows.

A shard is a node of a tree over the hashes of class keys: the root has all of them, each other one a quarter of what
the shard above it has. Settled rows enter at the root. Where shards lie below, rows wait until they are many, and then
go down together. In the lowest shards they meet the classes that are there, and are folded with them once there are as
many rows beside these. A shard of too many classes hands them to new ones below.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.runtime.state.segments import Segment

#: Shards below each, and how deep they lie at most: rows of one hash can not be told apart.
BRANCHES: Final = 4
DEEPEST: Final = 12
#: Rows of a shard, and how many shards with as many there are at most; those of larger states have more rows.
SHARD_ROWS: Final = 1 << 15
MOST_SHARDS: Final = 64
ROOT: Final = 1
#: A fold of such an urgency is done where a batch has no other to do, so that shards that fill together take turns.
SOON: Final = 0.75
_NODE_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class ShardTree:
    """How the numbers of segments tell shards. `version` is that of the hash: segments that were shared out by another
    one are at the root, like those that are new.
    """

    version: int

    @classmethod
    def of(cls, hashed: str) -> ShardTree:
        """The tree for a way of hashing, by its name."""
        return cls(int.from_bytes(hashlib.blake2s(hashed.encode(), digest_size=3).digest()) | 1)

    def number(self, node: int) -> int:
        """The `shard` of a segment at this node."""
        return self.version << _NODE_BITS | node

    def node(self, segment: Segment) -> int:
        return segment.shard & ((1 << _NODE_BITS) - 1) if self.is_folded(segment) else ROOT

    def is_folded(self, segment: Segment) -> bool:
        """Whether it has one row of a class at most: it was written by a fold."""
        return segment.shard >> _NODE_BITS == self.version


@dataclass(frozen=True, slots=True)
class FoldStep:
    """A fold of segments at a node of the tree.

    The classes go to the nodes `levels` below. Levels None: they stay, unless they are more than `most`. It is due once
    its `urgency` is 1.
    """

    tree: ShardTree
    node: int
    most: int
    urgency: float = 1.0
    levels: int | None = None

    def depths(self, classes: int) -> tuple[int, int]:
        """The depth of the node, and of those to which so many classes go."""
        depth = depth_of(self.node)
        levels = self.levels or 0
        if self.levels is not None or classes > self.most:
            while classes > self.most * BRANCHES**levels:
                levels += 1
        return depth, min(depth + levels, max(depth, DEEPEST))


def depth_of(node: int) -> int:
    return (node.bit_length() - 1) // (BRANCHES.bit_length() - 1)


def above(node: int) -> Iterable[int]:
    """The nodes above, the next one first."""
    while node > ROOT:
        node //= BRANCHES
        yield node


def fold_steps(
    tree: ShardTree, settled: Sequence[Segment], most_bytes: int | None
) -> list[tuple[FoldStep, list[Segment]]]:
    """The folds that are due or soon will be, the most urgent first, each with segments of one node: all of them, or as
    many as have `most_bytes` together.
    """
    most = max(SHARD_ROWS, _rows(settled) // MOST_SHARDS)
    if most_bytes is not None:
        most = min(most, affordable_rows(settled, most_bytes))
    at = by_node(tree, settled)
    inner = {node for one in at for node in above(one)}
    lowest: dict[int, int] = {}
    for one in at.keys() - inner:
        for node in above(one):
            lowest[node] = min(lowest.get(node, DEEPEST), depth_of(one))
    steps = []
    for node, every in at.items():
        some = every if most_bytes is None else _affordable(tree, every, most_bytes)
        rows = _rows(some)
        if node in inner:
            limit = most
            step = FoldStep(tree, node, most, rows / limit, _levels(rows, most, lowest[node] - depth_of(node)))
        else:
            limit = 2 * max((segment.rows for segment in some if tree.is_folded(segment)), default=0)
            step = FoldStep(tree, node, most, rows / max(1, limit))
        if step.urgency >= SOON:
            steps.append((step, some))
    return sorted(steps, key=lambda one: -one[0].urgency)


def affordable_rows(segments: Sequence[Segment], most_bytes: int) -> int:
    """How many rows a shard has at most, so that a few segments with as many are folded in `most_bytes`."""
    return max(1, most_bytes * _rows(segments) // max(1, 4 * sum(segment.bytes for segment in segments)))


def _affordable(tree: ShardTree, segments: Sequence[Segment], most_bytes: int) -> list[Segment]:
    """All segments of a node, or as many as have `most_bytes` together: those that were never folded in half of that,
    then the smallest of the others. So each fold leaves fewer of either, or goes down.
    """
    if sum(segment.bytes for segment in segments) <= most_bytes:
        return list(segments)
    chosen = set[int]()
    size = 0
    for segment in sorted(segments, key=lambda one: one.rows if tree.is_folded(one) else 0):
        most = most_bytes if tree.is_folded(segment) or not chosen else most_bytes // 2
        if size + segment.bytes <= most:
            chosen.add(id(segment))
            size += segment.bytes
    return [segment for segment in segments if id(segment) in chosen]


def by_node(tree: ShardTree, segments: Iterable[Segment]) -> dict[int, list[Segment]]:
    """Segments by their nodes."""
    at: dict[int, list[Segment]] = {}
    for segment in segments:
        at.setdefault(tree.node(segment), []).append(segment)
    return at


def _levels(rows: int, most: int, down: int) -> int:
    """How many levels so many rows go down, of `down`: no further than there are many for each node."""
    levels = 1
    while levels < down and rows * BRANCHES >= most * BRANCHES ** (levels + 1):
        levels += 1
    return levels


def _rows(segments: Iterable[Segment]) -> int:
    return sum(segment.rows for segment in segments)
