"""What `why` answers: statements with what they rest on, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.printing.plans import preformatted
from tidegate.algebra.time import Extended
from tidegate.analysis.inner_queries import with_inner_names


@checked_calls
@dataclass(frozen=True, slots=True)
class Why:
    """An answer as text: one entry per query that feeds the result; `to_dict()` has its parts.

    Examples:
        >>> program.session().why("Unpaid")
        no row of Unpaid is final yet
          held back by    Orders.ordered, of which nothing is known to have arrived
          final when      ordered <= Orders.ordered
          Orders.ordered  no row was accepted yet
    """

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "\n\n".join(str(part) for part in self.parts)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return preformatted(str(self))

    def to_dict(self) -> dict[str, object]:
        """The answer as plain values, for JSON; instants are ticks.

        Examples:
            >>> program.session().why("Unpaid").to_dict()["queries"][0]["says"]
            'no row of Unpaid is final yet'
        """
        return {"queries": [part.to_dict() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds an attribute of a result back, in ticks: the input, how far it lets the result be final, and how far
    the result would be if that stream had ended."""

    attribute: str
    stream: str
    by: str
    reach: Extended
    without: Extended


@dataclass(frozen=True, slots=True)
class Wait:
    """What the finality of a row waits for, in ticks: an input is to arrive up to `needed`, the end where that is ∞."""

    attribute: str
    stream: str
    by: str
    needed: Extended
    has: Extended


@dataclass(frozen=True, slots=True)
class Part:
    """One statement with what supports it, and what that rests on in turn."""

    query: str
    says: str
    lines: tuple[tuple[str, str], ...] = ()
    inner: tuple[Part, ...] = ()
    holds: tuple[Hold, ...] = ()
    waits: tuple[Wait, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._text(0))

    def with_names(self, names: Mapping[str, str]) -> Part:
        """The statement as people read it: `names` stand in the place of those of inner queries."""
        lines = tuple((with_inner_names(label, names), with_inner_names(text, names)) for label, text in self.lines)
        inner = tuple(part.with_names(names) for part in self.inner)
        return replace(self, says=with_inner_names(self.says, names), lines=lines, inner=inner)

    def _text(self, depth: int) -> Iterator[str]:
        yield "  " * depth + self.says
        before, width = "", max((len(label) for label, _ in self.lines), default=0) + 2
        for label, text in self.lines:
            yield "  " * depth + f"  {label if label != before else '':<{width}}{text}"
            before = label
        for part in self.inner:
            yield from part._text(depth + 1)

    def to_dict(self) -> dict[str, object]:
        return {
            "query": self.query,
            "says": self.says,
            "because": [{"what": label, "text": text} for label, text in self.lines],
            "holds": [_plain(hold) for hold in self.holds],
            "waits": [_plain(wait) for wait in self.waits],
            "inner": [part.to_dict() for part in self.inner],
        }


def _plain(reason: Hold | Wait) -> dict[str, object]:
    """The fields, ±∞ as text."""
    values = {name: getattr(reason, name) for name in reason.__slots__}
    return {name: str(value) if isinstance(value, float) else value for name, value in values.items()}
