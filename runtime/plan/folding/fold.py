"""Folds: how the rows of a buffer that are settled become one row per class (rules R30 to R33)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.terms import Term, call, conjunction, disjunction
from tidegate.algebra.time import Extended
from tidegate.analysis.state.folding.classes import Best
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.analysis.state.keep import Extents


@dataclass(frozen=True, slots=True)
class SettledCondition:
    """Which stored rows are settled at some progress, and their truth values there, as conditions."""

    condition: Term
    truths: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SettledRows:
    """Of a buffer that folds, how many stored rows are known to be settled, and between which instants the others are.

    Settled rows are one of each class and, unless each batch folds all, those that wait to be folded.
    """

    rows: int
    others: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Fold:
    """The fold of a buffer's rows, read by one leaf of one query.

    `keys` are the terms over stored columns that tell classes apart, beside truth values. `added` are columns that
    stand for several rows, each with the term that gives it for one row; `merged` says, by the name of the column, how
    those of a class merge. All other columns of a class are those of one of its rows: with `best` of that which has the
    best value there.
    """

    query: str
    leaf: int
    keys: tuple[Term, ...]
    added: tuple[tuple[str, Term], ...]
    merged: tuple[Aggregate, ...]
    best: tuple[str, Best] | None
    foldable: Foldable = field(compare=False, metadata={"advice": True})

    def settled(self, p: Mapping[str, Extended]) -> SettledCondition:
        """The rows that are settled at progress p of the query (rule R30)."""
        compared = self.foldable.comparisons
        true = [call("not", comparison.true.keep.condition(p)) for comparison in compared]
        false = [call("not", comparison.false.keep.condition(p)) for comparison in compared]
        return SettledCondition(
            conjunction([disjunction(list(pair)) for pair in zip(true, false, strict=True)]), tuple(true)
        )

    def settles_segment(self, bounds: Extents, p: Mapping[str, Extended]) -> bool:
        """Whether all rows of a segment with these bounds are settled."""
        return all(
            any(not side.keep.segment(bounds, p) for side in (comparison.true, comparison.false))
            for comparison in self.foldable.comparisons
        )
