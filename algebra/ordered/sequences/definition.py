"""What a row pattern asks for beside the order of its rows: conditions, measures, limits, which matches, which rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tidegate.algebra.terms import Term

#: The attributes of a result row: the instants of a match's first and last row, and the one from which nothing changes
#: it. In an empty match the first and the last row are the one at which it was looked for.
FIRST: Final = "first"
LAST: Final = "last"
DETECTED: Final = "detected"


@dataclass(frozen=True, slots=True)
class Definition:
    """The condition for a row to have a variable; it reads the row, and the match up to this row with the row in it."""

    variable: str
    condition: Term


@dataclass(frozen=True, slots=True)
class Measure:
    """A value of a match, over navigations."""

    name: str
    term: Term


@dataclass(frozen=True, slots=True)
class Point:
    """The instant of the first or last row with a variable; without one, of the match."""

    variable: str | None
    end: Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Limit:
    """`later - earlier` is at most so many ticks, which may be negative. True where one of the rows does not exist."""

    later: Point
    earlier: Point
    most: int


def within(ticks: int) -> Limit:
    """The limit of a whole match, from its first to its last row."""
    return Limit(Point(None, "last"), Point(None, "first"), ticks)


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search goes on after a match: behind its last row, at the row after its first, or at the first or last
    row with a variable.
    """

    to: Literal["past last row", "next row", "first", "last"] = "past last row"
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Preferred:
    """Of the matches that begin at a row the most preferred one, as ISO/IEC 19075-5 has it: its rows follow each other.
    The search goes on as `skip` says.
    """

    skip: Skip = Skip()


@dataclass(frozen=True, slots=True)
class EveryMatch:
    """All matches of all rows.

    contiguous: their rows follow each other. next: no row between two of a match could have gone on with it. any: rows
    between are skipped as one likes.
    """

    skipping: Literal["contiguous", "next", "any"] = "contiguous"


Selection: TypeAlias = Preferred | EveryMatch
PREFERRED: Final = Preferred()


@dataclass(frozen=True, slots=True)
class Reported:
    """Whether a match is one row or as many as it has rows; then whether empty matches are rows, and rows of none."""

    rows: Literal["one", "all"] = "one"
    empty: bool = True
    unmatched: bool = False


ONE_ROW: Final = Reported()


def point_text(point: Point) -> str:
    if point.variable is None:
        return point.end
    return f"{point.end}({point.variable})"


def limit_text(limit: Limit, ticks: Callable[[int], str]) -> str:
    """A limit as a comparison of a difference of instants."""
    return f"{point_text(limit.later)} - {point_text(limit.earlier)} <= {ticks(limit.most)}"


def selection_text(selection: Selection) -> str:
    """Which of the matches there are, and where the search goes on."""
    if isinstance(selection, EveryMatch):
        return {
            "contiguous": "every match of adjacent rows",
            "next": "every match, skipping till the next one that fits",
            "any": "every match, skipping any rows",
        }[selection.skipping]
    skip = selection.skip
    return f"skip {'to ' if skip.to != 'past last row' else ''}{skip.to}{f' {skip.variable}' if skip.variable else ''}"
