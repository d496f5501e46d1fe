"""Row patterns as the clause MATCH_RECOGNIZE: the inverse of `reader`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Scan
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Limit, Point, Reported, Skip, within
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    Variables,
)
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    pattern_text,
)
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.algebra.text.row_patterns.language import ROW_PATTERNS
from tidegate.algebra.text.writer import Writer, cannot, written_ticks
from tidegate.algebra.types import DOUBLE, STRING

_WRITER: Final = Writer(ROW_PATTERNS)
_SKIPS: Final = {"past last row": "PAST LAST ROW", "next row": "TO NEXT ROW", "first": "TO FIRST", "last": "TO LAST"}
_REPORTED: Final = {
    Reported("all"): "ALL ROWS PER MATCH",
    Reported("all", empty=False): "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    Reported("all", unmatched=True): "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}


def row_pattern_query(node: Sequences) -> str:
    """The text of a query for the matches of a stream, or of the clause over any other relation, which has no name;
    `QueryError` TG175 for what the language cannot say.
    """
    if not isinstance(node.input, Scan):
        return match_recognize_text(node)
    clause = "\n".join(f"    {line}" for line in match_recognize_text(node).splitlines())
    return f"FROM {_WRITER.name(node.input.stream.name)} MATCH_RECOGNIZE (\n{clause}\n)\n"


def match_recognize_text(node: Sequences) -> str:
    """What stands in the brackets of MATCH_RECOGNIZE; `QueryError` TG175 for what the language cannot say."""
    return _Printer.of(node).text()


@dataclass(frozen=True, slots=True)
class _Printer:
    """Writes one node; `subsets` are its subsets, and those that it reads without a name for them."""

    node: Sequences
    subsets: tuple[tuple[str, Variables], ...]

    @classmethod
    def of(cls, node: Sequences) -> _Printer:
        read = [n.variables if isinstance(n, RowsAggregate) else n.row.variables for n in _of_rows(node.navigations)]
        known = {members for _, members in node.subsets}
        unknown = dict.fromkeys(members for members in read if len(members) > 1 and members not in known)
        names = (f"U{number}" for number in range(1, 1_000_000))
        taken = {*node.variables, *(name for name, _ in node.subsets)}
        free = (name for name in names if name not in taken)
        return cls(node, (*node.subsets, *((next(free), members) for members in unknown)))

    def text(self) -> str:
        node = self.node
        order = [node.time] if node.tie is None else [node.time, node.tie]
        lines = [f"PARTITION BY {', '.join(map(_WRITER.name, node.keys))}"] if node.keys else []
        lines.append(f"ORDER BY {', '.join(map(_WRITER.name, order))}")
        measures = [f"{self.term(m.term, measure=True)} AS {_WRITER.name(m.name)}" for m in node.measures]
        lines += _listed("MEASURES", measures)
        lines += [self.reported(), f"AFTER MATCH SKIP {self.skip()}"]
        pattern = pattern_text(_renamed(node.pattern), self.ticks)
        lines.append(f"PATTERN ({pattern})")
        if node.limits:
            lines.append(f"WITHIN {' AND '.join(map(self.limit, node.limits))}")
        named = [f"{_WRITER.name(name)} = ({', '.join(map(_WRITER.name, of))})" for name, of in self.subsets]
        lines += _listed("SUBSET", named)
        lines += _listed(
            "DEFINE", [f"{_WRITER.name(d.variable)} AS {self.term(d.condition)}" for d in node.definitions]
        )
        return "\n".join(lines) + "\n"

    def ticks(self, amount: int) -> str:
        return written_ticks(amount, self.node.input.schema[self.node.time].type)

    def reported(self) -> str:
        reported = self.node.reported
        if reported.rows == "one" and not reported.unmatched:
            return "ONE ROW PER MATCH"
        if reported not in _REPORTED:
            raise cannot("rows of no match beside one row for a match, or without empty matches")
        return _REPORTED[reported]

    def skip(self) -> str:
        selection = self.node.selection
        if isinstance(selection, EveryMatch):
            raise cannot("every match: of those that begin at a row it has the preferred one")
        skip: Skip = selection.skip
        return _SKIPS[skip.to] + ("" if skip.variable is None else f" {_WRITER.name(skip.variable)}")

    def limit(self, limit: Limit) -> str:
        if limit.most >= 0 and limit == within(limit.most):
            return self.ticks(limit.most)
        ticks = f"-{self.ticks(-limit.most)}" if limit.most < 0 else self.ticks(limit.most)
        return f"{_point(limit.later)} - {_point(limit.earlier)} <= {ticks}"

    # Conditions and measures -----------------------------------------------------------------------------------------
    def term(self, term: Term, *, measure: bool = False) -> str:
        """A condition or a measure, with what it reads of rows."""
        navigations = {navigation.name: navigation for navigation in self.node.navigations}

        def attribute(name: str) -> str:
            return self.navigation(navigations[name], measure=measure) if name in navigations else _WRITER.name(name)

        return Writer(ROW_PATTERNS, attribute).term(term)

    def navigation(self, navigation: Navigation, *, measure: bool) -> str:
        """What is read of rows, as SQL writes it. In a measure an attribute alone is that of the last row so far."""
        match navigation:
            case MatchNumber():
                return "MATCH_NUMBER()"
            case Classifier(_, row, final):
                of = self.variable(row.variables)
                return _of_row(f"CLASSIFIER({of})", row, final=final, plain=True)
            case RowValue(_, argument, row, final):
                text = self.argument(argument, row.variables, "a value that is the same in all rows")
                plain = (measure or bool(row.variables)) and isinstance(argument, Attr)
                return _of_row(text, row, final=final, plain=plain)
            case RowsAggregate(aggregate, variables, final):
                return f"{'FINAL ' if final else ''}{self.aggregate(aggregate, variables)}"
            case _:
                assert_never(navigation)

    def aggregate(self, aggregate: Aggregate, variables: Variables) -> str:
        if aggregate.by != (Attr(self.node.time) if aggregate.entry.ordered else None):
            raise cannot(f"aggregate {aggregate.name} in another order than that of time")
        if aggregate.function in (Function.FIRST, Function.LAST):
            raise cannot(f"aggregate {aggregate.function.value}, which skips NULL", "take the row: FIRST(A.x)")
        name = aggregate.function.value.upper()
        if aggregate.argument is None:
            return f"{name}({self.variable(variables)}{'.' if variables else ''}*)"
        text = self.argument(aggregate.argument, variables, "aggregate of a value that is the same in all rows")
        if aggregate.parameter is not None:
            type_ = STRING if isinstance(aggregate.parameter, str) else DOUBLE
            text += f", {value_text(aggregate.parameter, type_)}"
        return f"{name}({text})"

    def argument(self, argument: Term, variables: Variables, otherwise: str) -> str:
        if not attributes_of(argument):
            raise cannot(otherwise)
        prefix = f"{self.variable(variables)}." if variables else ""
        return Writer(ROW_PATTERNS, lambda name: prefix + _WRITER.name(name)).term(argument)

    def variable(self, variables: Variables) -> str:
        """The name for these variables; empty for all rows."""
        if not variables:
            return ""
        if len(variables) == 1:
            return _WRITER.name(variables[0])
        return _WRITER.name(next(name for name, members in self.subsets if members == variables))


def _listed(clause: str, parts: Sequence[str]) -> list[str]:
    indent = ",\n" + " " * (len(clause) + 1)
    return [f"{clause} {indent.join(parts)}"] if parts else []


def _of_row(text: str, row: RowOf, *, final: bool, plain: bool) -> str:
    """The value in a row. `plain`: it is of the last one where nothing else is said."""
    inside = final or row.end == "first" or row.offset > 0
    if inside or not (plain or row.step):
        offset = f", {row.offset}" if row.offset else ""
        text = f"{'FINAL ' if final else ''}{row.end.upper()}({text}{offset})"
    if row.step:
        steps = "" if abs(row.step) == 1 else f", {abs(row.step)}"
        text = f"{'NEXT' if row.step > 0 else 'PREV'}({text}{steps})"
    return text


def _of_rows(navigations: Sequence[Navigation]) -> list[RowValue | Classifier | RowsAggregate]:
    return [navigation for navigation in navigations if not isinstance(navigation, MatchNumber)]


def _point(point: Point) -> str:
    return point.end.upper() + ("" if point.variable is None else f"({_WRITER.name(point.variable)})")


def _renamed(pattern: Pattern) -> Pattern:
    """The pattern with variables as they are written."""
    match pattern:
        case Step():
            return replace(pattern, variable=_WRITER.name(pattern.variable))
        case Anchor():
            return pattern
        case Concatenation() | Alternation() | Permutation():
            return replace(pattern, parts=tuple(map(_renamed, pattern.parts)))
        case Repetition() | Exclusion() | Absence():
            return replace(pattern, part=_renamed(pattern.part))
        case _:
            assert_never(pattern)
