"""Bounded state: a proof with a horizon, or the constraint that is missing for it (rule R17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.progress.propagation import Latencies
from tidegate.analysis.progress.symbolic import sum_text
from tidegate.analysis.state.keep import Keep
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.wording import factor

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True, slots=True)
class Bounded:
    """At most the rows that a stream accepts within `horizon` ticks, plus its skew ahead, plus the inputs' lag, plus
    what the query itself is behind of what they allow, where a schedule lets it.

    `horizon` -∞: no row is ever kept. `lagging`: whether the query waits for several inputs, so that lag counts.
    `tables`: static tables joined before a row is kept, so that it is kept once per match.
    """

    stream: str
    horizon: Extended
    lagging: bool
    type: DataType
    tables: tuple[str, ...] = ()

    def span(self, skew: Extended = 0, lag: Extended = 0, behind: Extended = 0) -> Extended:
        """The length in ticks of the interval whose rows bound the state. Negative: nothing is kept."""
        if self.horizon == -INF:
            return -INF
        return self.horizon + skew + (lag if self.lagging else 0) + behind

    def __str__(self) -> str:
        if self.horizon == -INF:
            return f"no row of {self.stream} is kept"
        factors = [f"rate({self.stream})", *(f"matches({table})" for table in self.tables)]
        return " × ".join([*factors, factor(sum_text(int(self.horizon), self._names(), self.type))])

    def expression(self) -> sympy.Expr:
        """The bound as a sympy expression: rate × most matches of a row in tables × (horizon in ticks + skew + lag)."""
        import sympy

        if self.horizon == -INF:
            return sympy.Integer(0)
        factors = [f"rate({self.stream})", *(f"matches({table})" for table in self.tables)]
        return sympy.Mul(*(sympy.Symbol(factor, nonnegative=True) for factor in factors), self.length())

    def length(self) -> sympy.Expr:
        """The length in ticks of the interval whose rows bound the state, where any is kept."""
        import sympy

        return sympy.Add(int(self.horizon), *(sympy.Symbol(name, nonnegative=True) for name in self._names()))

    def _names(self) -> list[str]:
        return [f"skew({self.stream})", *(["lag"] if self.lagging else [])]


@dataclass(frozen=True, slots=True, eq=False)
class MissingConstraint:
    """The constraint that would bound an occurrence: `a - y <= c` for any of the attributes and any y."""

    attributes: tuple[str, ...]
    progressing: tuple[str, ...]

    def __str__(self) -> str:
        choices = [f"{a} - {y} <= c" for a in self.attributes for y in self.progressing]
        return " or ".join(choices[:3]) + (" or …" if len(choices) > 3 else "")


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Rows are dropped in time, but no constant bounds their number, as the dropping attribute does not progress."""

    missing: MissingConstraint

    def __str__(self) -> str:
        return f"collected, but not bounded: missing {self.missing}"


@dataclass(frozen=True, slots=True, eq=False)
class Unbounded:
    """The rows of some case stay for ever."""

    missing: MissingConstraint

    def __str__(self) -> str:
        return f"unbounded: missing {self.missing}"


@dataclass(frozen=True, slots=True)
class Static:
    """The whole static table."""

    stream: str

    def __str__(self) -> str:
        return f"the table {self.stream}"


Bound = Bounded | Collected | Unbounded | Static


def bound(
    federation: Federation,
    i: int,
    keep: Keep,
    latencies: Latencies,
    tables: tuple[str, ...] = (),
) -> Bound:
    """The bound of an occurrence's live rows, by its views and the latencies of the promised attributes.

    Horizon: over the views the largest of `min over j, y of (L_j + d(y, a_j))`.
    """
    stream = federation.occurrences[i]
    if stream.static:
        return Static(stream.name)
    horizon: Extended = -INF
    unbounded: list[MissingConstraint] = []
    collected: list[MissingConstraint] = []
    for view in keep.views:
        reach = [latencies.of[a] + d for a in view.promised for y in stream.progress if (d := view.ahead(y, a)) != INF]
        if reach:
            horizon = max(horizon, min(reach))
            continue
        missing = MissingConstraint(view.promised, tuple(federation.attribute_name(i, y) for y in stream.progress))
        drops = any(view.ahead(x, a) != INF for a in view.promised for x in view.columns)
        (collected if drops else unbounded).append(missing)
    if unbounded:
        return Unbounded(unbounded[0])
    if collected:
        return Collected(collected[0])
    return Bounded(stream.name, horizon, len(latencies.inputs) > 1, stream.schema[stream.progress[0]].type, tables)
