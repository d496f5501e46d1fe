"""Zones: closed difference-bound matrices over instants (TSA Def. 5 per conjunction, rule R4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.zones.normal_form import Bound

Matrix = NDArray[np.int64]

#: "No bound" in a matrix. Finite entries stay within ±LARGEST, so that the sum of two and a constant fits int64.
NONE = 2**62
LARGEST = 2**61

#: The copy of a temporal attribute of an occurrence ("x", i, name), or the hidden variable of an attribute of which no
#: term is known ("v", k, name).
Copy = tuple[Literal["x", "v"], int, str]


@dataclass(frozen=True, slots=True)
class Rounding:
    """The last multiple of `unit` ticks at or before `base + offset`. With unit 1 it is `base + offset` itself."""

    base: Hidden
    offset: int
    unit: int


@dataclass(frozen=True, slots=True)
class ShiftedInstant:
    """The instant of a row, plus a number of ticks."""

    row: Hidden
    by: int = 0


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or the greatest of several instants."""

    op: Literal["least", "greatest"]
    parts: tuple[RowTerm, ...]


#: A temporal term over rows.
RowTerm = ShiftedInstant | Extreme
#: What a row of the matrix stands for: never an output attribute, which is a name for such a row.
Hidden = Copy | Rounding | Extreme
#: An output attribute ("a", name), or what a row stands for.
Variable = tuple[Literal["a"], str] | Hidden


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The meaning of a matrix's rows, and the row of each output attribute. Zones share it.

    Output attributes are names: an attribute and the occurrence's copy that it came from are one row.
    """

    rows: tuple[Hidden, ...]
    attributes: Mapping[str, int]
    index: Mapping[Hidden, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {row: i for i, row in enumerate(self.rows)})

    def named(self) -> dict[str, Hidden]:
        """What each output attribute stands for."""
        return {name: self.rows[row] for name, row in self.attributes.items()}

    def find(self, variable: Variable) -> int | None:
        """Row of a variable, or None where the zone says nothing of it."""
        if isinstance(variable, tuple) and variable[0] == "a":
            return self.attributes.get(variable[1])
        return self.index.get(variable)


@dataclass(frozen=True, slots=True)
class Edge:
    """A constraint `v - w <= c` as it was given, before closure. Explanations consist of edges."""

    w: Hidden
    v: Hidden
    c: int
    source: Term | None = None
    #: Name of the stream that declares it, for constraints that no query wrote.
    declared_by: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a conjunction is inconsistent: the edge that closed a cycle of negative length, and those before it."""

    edges: tuple[Edge, ...]
    closing: Edge

    def cycle(self) -> tuple[Edge, ...]:
        """The edges of the cycle, ending with the one that closed it."""
        return (*chain(self.edges, self.closing.v, self.closing.w), self.closing)


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """A consistent, closed difference-bound matrix: `matrix[w, v]` bounds `v - w`.

    `ignored` are the occurrences of which the zone says nothing (the flag that TSA writes as `ignore`). `edges` are
    the constraints it was built from, also those over variables that were hidden since.
    """

    layout: Layout
    matrix: Matrix
    ignored: frozenset[int] = frozenset()
    edges: tuple[Edge, ...] = ()

    @classmethod
    def free(cls, layout: Layout) -> Zone:
        """The zone without constraints."""
        return cls(layout, _unbounded(len(layout.rows)))

    def distance(self, w: Variable, v: Variable) -> Extended:
        """`d(w, v)`: the bound on `v - w`, +∞ where there is none (Def. 5, for this zone)."""
        i, j = self.layout.find(w), self.layout.find(v)
        if i is None or j is None:
            return 0 if w == v else INF
        bound = int(self.matrix[i, j])
        return INF if bound >= NONE else bound

    def conjoin(self, bounds: Iterable[Bound], declared_by: str = "") -> Zone | Conflict:
        """The zone with constraints between output attributes added; closure is kept edge by edge, O(n²) each."""
        attributes, rows = self.layout.attributes, self.layout.rows
        matrix, added = self.matrix, list[Edge]()
        for bound in bounds:
            w, v = attributes[bound.w], attributes[bound.v]
            if matrix[w, v] <= bound.c:
                continue
            edge = Edge(rows[w], rows[v], bound.c, bound.source, declared_by)
            if matrix[v, w] + bound.c < 0:
                return Conflict((*self.edges, *added), edge)
            if matrix is self.matrix:
                matrix = matrix.copy()
            _tighten(matrix, w, v, bound.c)
            added.append(edge)
        return replace(self, matrix=matrix, edges=(*self.edges, *added)) if added else self

    def entails(self, bound: Bound) -> bool:
        """Whether every point of the zone satisfies the constraint."""
        attributes = self.layout.attributes
        return bool(self.matrix[attributes[bound.w], attributes[bound.v]] <= bound.c)

    def product(self, other: Zone, layout: Layout) -> Zone:
        """Both zones side by side; `layout` is that of this zone followed by that of the other."""
        n = len(self.layout.rows)
        matrix = np.full((len(layout.rows),) * 2, NONE, dtype=np.int64)
        matrix[:n, :n] = self.matrix
        matrix[n:, n:] = other.matrix
        return Zone(layout, matrix, self.ignored | other.ignored, self.edges + other.edges)

    def arranged(self, layout: Layout) -> Zone:
        """The zone over other rows: those missing are hidden, exactly, since it is closed; new ones are free."""
        if layout.rows == self.layout.rows:
            return replace(self, layout=layout)
        positions = [self.layout.index.get(row) for row in layout.rows]
        old = [position for position in positions if position is not None]
        if len(old) == len(positions):
            return replace(self, layout=layout, matrix=self.matrix[np.ix_(old, old)])
        new = [i for i, position in enumerate(positions) if position is not None]
        matrix = _unbounded(len(positions))
        matrix[np.ix_(new, new)] = self.matrix[np.ix_(old, old)]
        return replace(self, layout=layout, matrix=matrix)

    def ignoring(self, occurrences: Iterable[int]) -> Zone:
        """The zone with further occurrences ignored."""
        return replace(self, ignored=self.ignored.union(occurrences))

    def view(self, variables: Sequence[Variable]) -> Matrix:
        """The closed matrix over some variables (the projection); variables unknown to the zone are free."""
        places = [self.layout.find(variable) for variable in variables]
        if None not in places:
            rows = np.array(places, dtype=np.intp)
            return self.matrix[np.ix_(rows, rows)]
        matrix = _unbounded(len(places))
        known = [i for i, row in enumerate(places) if row is not None]
        matrix[np.ix_(known, known)] = self.view([variables[i] for i in known])
        return matrix

    def extends(self, other: Zone) -> bool:
        """Whether this zone is made of another one, which ignores more, by further constraints."""
        return (
            other.ignored > self.ignored
            and other.edges == self.edges[: len(other.edges)]
            and self.layout.index.keys() >= other.layout.index.keys()
            and self.layout.named() == other.layout.named()
        )

    def chain(self, w: Variable, v: Variable) -> tuple[Edge, ...]:
        """The given constraints that add up to `d(w, v)`, from w to v; empty where there is no bound."""
        i, j = self.layout.find(w), self.layout.find(v)
        if i is None or j is None:
            return ()
        return chain(self.edges, self.layout.rows[i], self.layout.rows[j])

    def point(self) -> dict[Hidden, int]:
        """Instants that satisfy the zone, the first variable at 0, the others as close to it as they can be."""
        values: list[int] = []
        for v in range(len(self.layout.rows)):
            above = [values[w] + int(self.matrix[w, v]) for w in range(v) if self.matrix[w, v] < NONE]
            below = [values[w] - int(self.matrix[v, w]) for w in range(v) if self.matrix[v, w] < NONE]
            values.append(min(max([0, *below]), min(above)) if above else max([0, *below]))
        return dict(zip(self.layout.rows, values, strict=True))


def attribute_of(row: Hidden) -> str:
    """The attribute that a row of the matrix is a copy of, or the variable of."""
    assert isinstance(row, tuple), f"{row} is a term"
    return row[2]


def is_copy(row: Hidden) -> TypeGuard[Copy]:
    """Whether a row is the copy of an instant of an occurrence's row."""
    return isinstance(row, tuple) and row[0] == "x"


def rounded(row: Hidden) -> Hidden:
    """What a row rounds, or a rounding inside it; of any other row the row itself."""
    while isinstance(row, Rounding):
        row = row.base
    return row


def _unbounded(n: int) -> Matrix:
    matrix = np.full((n, n), NONE, dtype=np.int64)
    np.fill_diagonal(matrix, 0)
    return matrix


def _tighten(matrix: Matrix, w: int, v: int, c: int) -> None:
    """Adds `v - w <= c` to a closed matrix in place and closes it again; the caller has checked consistency."""
    before, after = matrix[:, w], matrix[v, :]
    # No np.ix_ and no flatnonzero: of matrices this small they would be half of the time.
    rows, columns = (before < NONE).nonzero()[0], (after < NONE).nonzero()[0]
    sums = (before[rows] + c)[:, None] + after[columns]
    # Beyond ±LARGEST a bound is weakened instead of overflowing: a larger zone is sound everywhere.
    np.maximum(sums, -LARGEST, out=sums)
    sums[sums > LARGEST] = NONE
    block = rows[:, None], columns
    matrix[block] = np.minimum(matrix[block], sums)


def close(matrix: Matrix) -> Matrix | None:
    """Shortest paths between all pairs (Floyd–Warshall); None where a cycle is negative. O(n³), for whole matrices."""
    closed = matrix.copy()
    np.fill_diagonal(closed, np.minimum(np.diagonal(closed), 0))
    for u in range(len(closed)):
        before, after = closed[:, u], closed[u, :]
        rows, columns = np.flatnonzero(before < NONE), np.flatnonzero(after < NONE)
        block = np.ix_(rows, columns)
        closed[block] = np.minimum(closed[block], np.maximum(before[rows][:, None] + after[columns][None, :], -LARGEST))
        if (np.diagonal(closed) < 0).any():
            return None
    closed[closed > LARGEST] = NONE
    return closed


def reduced(matrix: Matrix) -> tuple[tuple[int, int, int], ...]:
    """A smallest set of constraints `(w, v, c)`, meaning `v - w <= c`, whose closure is the closed matrix.

    Variables at a fixed distance form a class, chained in a ring; between the classes' first members, a constraint
    stays if no path through a third class is as short.
    """
    n = len(matrix)
    leader = list(range(n))
    classes: dict[int, list[int]] = {}
    for v in range(n):
        leader[v] = next((u for u in classes if matrix[u, v] < NONE and matrix[u, v] + matrix[v, u] == 0), v)
        classes.setdefault(leader[v], []).append(v)
    kept: list[tuple[int, int, int]] = []
    for members in classes.values():
        ring = [*members, members[0]] if len(members) > 1 else []
        kept += [(w, v, int(matrix[w, v])) for w, v in pairwise(ring)]
    # Of two hundred streams there are millions of paths.
    first = np.array(list(classes), dtype=np.intp)
    bounds = matrix[np.ix_(first, first)]
    bounded = bounds < NONE
    for k, w in enumerate(first):
        paths = np.where(bounded[k][:, None] & bounded, bounds[k][:, None] + bounds, NONE)
        paths[k] = NONE
        np.fill_diagonal(paths, NONE)
        shorter = bounded[k] & (bounds[k] < paths.min(axis=0))
        kept += [(int(w), int(first[v]), int(bounds[k, v])) for v in np.flatnonzero(shorter) if v != k]
    return tuple(kept)


def hull(matrices: Sequence[Matrix]) -> Matrix:
    """The smallest zone around several closed ones over the same variables: the largest of each bound, itself
    closed.
    """
    result: Matrix = np.maximum.reduce(matrices)
    return result


def around(zones: Sequence[Zone], declared_by: str) -> Zone:
    """The smallest zone that has others of the same layout in it; its constraints are said to come from them
    together.
    """
    first = zones[0]
    matrix = hull([zone.matrix for zone in zones])
    rows = first.layout.rows
    edges = tuple(Edge(rows[w], rows[v], c, None, declared_by) for w, v, c in reduced(matrix))
    return Zone(first.layout, matrix, first.ignored, edges)


def chain(edges: Sequence[Edge], w: Hidden, v: Hidden) -> tuple[Edge, ...]:
    """A shortest path of constraints from w to v, in order; empty where there is none or w is v."""
    if w == v:
        return ()
    import networkx as nx

    shortest: dict[tuple[Hidden, Hidden], Edge] = {}
    for edge in edges:
        known = shortest.get((edge.w, edge.v))
        if known is None or edge.c < known.c:
            shortest[edge.w, edge.v] = edge
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((start, end, edge.c) for (start, end), edge in shortest.items())
    if w not in graph or v not in graph or not nx.has_path(graph, w, v):
        return ()
    return tuple(shortest[pair] for pair in pairwise(nx.bellman_ford_path(graph, w, v)))
