"""Views: what a federation says of one occurrence and the promised attributes alone, F_i (rule R9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.algebra.time import INF, Extended
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.pruning import maximal
from tidegate.analysis.zones.zone import NONE, Matrix, Variable, Zone, hull, reduced

MAX_VIEWS = 32


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A zone over the temporal attributes of one occurrence's rows and the promised attributes of the result.

    `matrix` is closed; its first rows are `columns`, then come `promised`. `zones` are those that it stands for.
    """

    columns: tuple[str, ...]
    promised: tuple[str, ...]
    matrix: Matrix
    zones: tuple[Zone, ...]
    occurrence: int
    _column: dict[str, int] = field(init=False, repr=False)
    _attribute: dict[str, int] = field(init=False, repr=False)
    _bounds: tuple[tuple[Extended, ...], ...] = field(init=False, repr=False)
    """The matrix as numbers: every segment is looked at in every batch."""

    def __post_init__(self) -> None:
        finite = ((INF if (d := int(entry)) >= NONE else d for entry in row) for row in self.matrix)
        object.__setattr__(self, "_column", {x: k for k, x in enumerate(self.columns)})
        object.__setattr__(self, "_attribute", {a: k for k, a in enumerate(self.promised, len(self.columns))})
        object.__setattr__(self, "_bounds", tuple(map(tuple, finite)))

    @property
    def bounds(self) -> tuple[tuple[Extended, ...], ...]:
        """The matrix as numbers."""
        return self._bounds

    def parts(self) -> tuple[View, ...]:
        """One view for each zone that this view stands for."""
        variables = _variables(self.occurrence, self.columns, self.promised)
        views = ((zone.view(variables), (zone,)) for zone in self.zones)
        return tuple(View(self.columns, self.promised, matrix, zones, self.occurrence) for matrix, zones in views)

    def ahead(self, x: str, a: str) -> Extended:
        """How far the attribute can lie after the row's instant: `a <= x + ahead(x, a)`."""
        return self._bounds[self._column[x]][self._attribute[a]]

    def behind(self, a: str, x: str) -> Extended:
        """How far the row's instant can lie after the attribute: `x <= a + behind(a, x)`."""
        return self._bounds[self._attribute[a]][self._column[x]]

    def within(self, x: str, y: str) -> Extended:
        """`y <= x + within(x, y)` between two instants of the row."""
        return self._bounds[self._column[x]][self._column[y]]

    def across(self, a: str, b: str) -> Extended:
        """`b <= a + across(a, b)` between two attributes of the result."""
        return self._bounds[self._attribute[a]][self._attribute[b]]


def views(federation: Federation, i: int, promised: Sequence[str]) -> tuple[View, ...]:
    """F_i over the promised attributes: the projections of all zones that do not ignore i, the contained ones left out.

    Here plain containment is sound: all of these zones speak of i, and nothing else is asked of them. More than
    MAX_VIEWS become their hull: a larger zone keeps more rows, and a condition of thousands of cases helps nobody.
    """
    columns = federation.occurrences[i].schema.temporal
    variables = _variables(i, columns, promised)
    speaking = [zone for zone in federation.zones if i not in zone.ignored]
    matrices = [zone.view(variables) for zone in speaking]
    kept = maximal(matrices)
    if len(kept) > MAX_VIEWS:
        return (View(columns, tuple(promised), hull(matrices), tuple(speaking), i),)
    return tuple(View(columns, tuple(promised), matrices[k], (speaking[k],), i) for k in kept)


def _variables(i: int, columns: Sequence[str], promised: Sequence[str]) -> list[Variable]:
    return [*(("x", i, name) for name in columns), *(("a", name) for name in promised)]


@dataclass(frozen=True, slots=True)
class Necessary:
    """The constraints of a view that a test of a row needs; the others follow from these.

    `inner`: pairs of columns (x, y, c) with `y - x <= c`; `ahead[a]`: columns (x, d) with `a <= x + d`; `behind[a]`:
    columns (x, d) with `x <= a + d`.
    """

    inner: tuple[tuple[str, str, int], ...]
    ahead: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    behind: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


def necessary(view: View, declared: Matrix | None) -> Necessary:
    """The constraints of a view that neither other ones nor the stream's declared relations imply.

    `declared` is the closed matrix over the columns that every row of the stream satisfies.
    """
    n = len(view.columns)
    inner = tuple(
        (view.columns[w], view.columns[v], c)
        for w, v, c in reduced(view.matrix[:n, :n])
        if declared is None or declared[w, v] > c
    )
    ahead = []
    behind = []
    for a in view.promised:
        up = {x: int(d) for x in view.columns if (d := view.ahead(x, a)) != INF}
        down = {x: int(d) for x in view.columns if (d := view.behind(a, x)) != INF}
        ahead.append((a, _tightest(view, up, towards=True)))
        behind.append((a, _tightest(view, down, towards=False)))
    return Necessary(inner, tuple(ahead), tuple(behind))


def _tightest(view: View, bounds: dict[str, int], *, towards: bool) -> tuple[tuple[str, int], ...]:
    """Leaves out a column whose bound goes through another column that is left in."""
    kept = dict(bounds)
    for x in bounds:
        for y in kept:
            if y != x and bounds[x] == (view.within(x, y) if towards else view.within(y, x)) + bounds[y]:
                del kept[x]
                break
    return tuple(kept.items())


def declared_matrix(federation: Federation, i: int) -> Matrix | None:
    """What the definition of occurrence i's stream says of each of its rows; None where it admits no row."""
    from tidegate.algebra.nodes import Scan
    from tidegate.analysis.federation.federation import federation as federation_of

    alone = federation_of(Scan(federation.occurrences[i]))
    variables: list[Variable] = [("x", 0, name) for name in federation.occurrences[i].schema.temporal]
    return hull([zone.view(variables) for zone in alone.zones]) if alone.zones else None
