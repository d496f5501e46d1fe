"""Folds: how the rows of a buffer that are settled become one row per class (rules R30 to R33)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.terms import Term, call, conjunction, disjunction
from tidegate.algebra.time import Extended
from tidegate.analysis.state.folding.classes import Best
from tidegate.analysis.state.folding.foldable import Foldable
from tidegate.analysis.state.thresholds import Extents


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
class FoldReader:
    """A leaf of a query that reads folded rows, and what has to be settled of them for it."""

    query: str
    leaf: int
    foldable: Foldable = field(compare=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """The fold of a buffer's rows.

    `keys` are the terms over stored columns that tell classes apart, beside truth values. `added` are columns that
    stand for several rows, each with the term that gives it for one row; `merged` says, by the name of the column, how
    those of a class merge; a sum in the order of another column takes what that one loses. Columns `sketched` have
    values of sketches, whose places tell classes apart, too: of the values at a place one serves for all, the one with
    the greatest number where that counts. All other columns of a class are those of one of its rows: with `best` of
    that which has the best value there. `settling` tells apart what has to be settled, whatever the names of a
    result's instants.

    Folds that agree in `keys`, `sketched`, `best` and `settling` are one: rows are folded once they are settled for
    every reader, each by the progress of its query.
    """

    keys: tuple[Term, ...]
    added: tuple[tuple[str, Term], ...]
    merged: tuple[Aggregate, ...]
    sketched: tuple[str, ...]
    best: tuple[str, Best] | None
    settling: tuple[object, ...]
    readers: tuple[FoldReader, ...] = field(compare=False, metadata={"advice": True})

    @property
    def apart(self) -> Fold:
        """What tells it from other folds of the same rows, without what is stored of a class."""
        return replace(self, added=(), merged=(), readers=())

    def beside(self, other: Fold) -> Fold:
        """Both folds as one, with what either reads of a class. The order in which queries come changes nothing."""
        added = dict(sorted({**dict(self.added), **dict(other.added)}.items()))
        merged = {partial.name: partial for partial in (*self.merged, *other.merged)}
        readers = sorted((*self.readers, *other.readers), key=lambda reader: (reader.query, reader.leaf))
        return replace(
            self,
            added=tuple(added.items()),
            merged=tuple(merged[name] for name in sorted(merged)),
            readers=tuple(readers),
        )

    def settled(self, progress: Mapping[str, Mapping[str, Extended]]) -> SettledCondition:
        """The rows that are settled at this progress of queries, by their names (rule R30)."""
        conditions: dict[Term, None] = {}
        truths: dict[Term, None] = {}
        for reader in self.readers:
            p = progress[reader.query]
            for compared in reader.foldable.comparisons:
                true, false = (call("not", side.keep.condition(p)) for side in (compared.true, compared.false))
                conditions[disjunction([true, false])] = None
                truths[true] = None
            for term in reader.foldable.terms:
                conditions |= {call("not", query.keep.condition(p)): None for query in term.queries}
        return SettledCondition(conjunction(list(conditions)), tuple(truths))

    def settles_segment(self, bounds: Extents, progress: Mapping[str, Mapping[str, Extended]]) -> bool:
        """Whether all rows of a segment with these bounds are settled."""
        return all(_settles_segment(reader.foldable, bounds, progress[reader.query]) for reader in self.readers)


def _settles_segment(foldable: Foldable, bounds: Extents, p: Mapping[str, Extended]) -> bool:
    compared = all(
        any(not side.keep.segment(bounds, p) for side in (comparison.true, comparison.false))
        for comparison in foldable.comparisons
    )
    return compared and not any(query.keep.segment(bounds, p) for term in foldable.terms for query in term.queries)


def settling(foldable: Foldable) -> tuple[object, ...]:
    """What has to be settled of rows, with numbers in the place of the names of a result's instants."""
    numbers: dict[str, int] = {}

    def named(pairs: Iterable[tuple[str, object]]) -> tuple[object, ...]:
        return tuple((numbers.setdefault(name, len(numbers)), known) for name, known in pairs)

    asked = [compared.true for compared in foldable.comparisons]
    asked += [query for term in foldable.terms for query in term.queries]
    return tuple(
        tuple((one.inner, named(one.ahead), named(one.behind)) for one in query.keep.needed) for query in asked
    )
