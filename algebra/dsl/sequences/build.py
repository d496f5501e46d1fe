"""How `sequences` makes its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import applied, check_condition, listed
from tidegate.algebra.dsl.checks.suggestions import (
    SEQUENCE_KEYWORDS,
    SEQUENCE_OPTIONS,
    SEQUENCE_VALUES,
    matched_rows_hint,
)
from tidegate.algebra.dsl.expression import Expression, ValueOfGroup, to_expression
from tidegate.algebra.dsl.sequences.rows import MatchedRows, Navigations
from tidegate.algebra.errors import QueryError
from tidegate.algebra.formulas import And, Compare, Formula, Shift, TemporalTerm, Var, temporal_formula
from tidegate.algebra.ordered.sequences.definition import (
    Definition,
    EveryMatch,
    Limit,
    Measure,
    Point,
    Preferred,
    Reported,
    Selection,
    Skip,
)
from tidegate.algebra.ordered.sequences.definition import within as whole_match
from tidegate.algebra.ordered.sequences.navigation import RowOf, RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Pattern, absent_in, variables_of
from tidegate.algebra.schema import Attribute, checked_name
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of, rename_attributes
from tidegate.algebra.types import DURATION

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation

#: What a condition or a measure is: computed from the rows of a match.
OfMatch: TypeAlias = "Expression | Callable[[MatchedRows], object]"

_SELECTIONS: Final = ("preferred", "contiguous", "next", "any")
_SKIPS: Final = ("past last row", "next row", "first V", "last V")
_MOST_PER_START: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """The options of `sequences` as they are given."""

    define: Mapping[str, object]
    subsets: Mapping[str, Iterable[str]]
    within: Duration
    limits: object
    matches: object
    skip: object
    rows: object
    empty: bool
    unmatched: bool
    per_start: object


#: The options of `sequences` by their names.
_OPTIONS: Final = ("by", "order", "tie", *(field.name for field in fields(SequenceOptions)))


def pattern_of(given: object, relation: Relation, time: str) -> Pattern:
    """The pattern that is given as text, or as it is; `QueryError` TG114 for what is none."""
    if isinstance(given, str):
        from tidegate.algebra.text.durations import duration_of
        from tidegate.algebra.text.row_patterns.patterns import read_pattern

        of = relation.schema[time]
        return read_pattern(given, lambda text, part: duration_in_ticks(duration_of(text, part, of, {}), of.type, "!"))
    if isinstance(given, get_args(Pattern)):
        return given  # type: ignore[no-any-return]  # it is one of the union
    raise QueryError("TG114", f"{shown(given)} is no row pattern", hint='write sequences("A B+ C?", by="key")')


def sequences_node(
    relation: Relation,
    pattern: Pattern,
    order: tuple[tuple[str, ...], str, str | None],
    options: SequenceOptions,
    measures: Mapping[str, object],
) -> tuple[Sequences, list[Expression]]:
    """The node, and the parts that it is written with."""
    keys, time, tie = order
    for name, given in measures.items():
        _check_measure(name, given)
    subsets = tuple((name, tuple(listed(of))) for name, of in options.subsets.items())
    variables = tuple(dict.fromkeys((*variables_of(pattern), *absent_in(pattern))))
    read = Navigations(relation, (*variables, *options.subsets), dict(subsets))
    for name in options.define:
        if name not in variables:
            near = nearest(str(name), variables, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"variables: {', '.join(variables)}"
            raise QueryError("TG101", f"the pattern has no variable {shown(name)}", hint=hint)
    definitions = tuple(Definition(name, _condition(read, given)) for name, given in options.define.items())
    computed = tuple(Measure(checked_name(name, "an attribute"), _measure(read, one)) for name, one in measures.items())
    limits = [*_within(options.within, relation, time), *_limits(read, options.limits, time)]
    node = Sequences(
        relation._node,
        keys,
        time,
        tie,
        pattern,
        definitions,
        tuple(read.by_name.values()),
        computed,
        tuple(limits),
        _selection(options, read.variables),
        _reported(options),
        subsets,
        _per_start(options),
    )
    return node, read.parts


def _given(read: Navigations, given: object) -> Expression:
    """The expression of a condition or measure, of which the attributes are those of the row at hand."""
    value = applied(given, MatchedRows(read), hint="write lambda m: m.A.x > 1") if callable(given) else given
    if isinstance(value, AggregateExpression):
        variable = value._variable() or next(iter(read.variables))
        hint = matched_rows_hint(value._function.value, variable)
        raise QueryError("TG115", f"{value!r} is an aggregate, and says not of which rows of the match", hint=hint)
    part = to_expression(value)
    own = {name: use for name, use in part._reads.items() if use.origin is not read.origin}
    read.of._column(Expression(part._term, part._type, own, {}))
    read.parts.append(part)
    return part


def _condition(read: Navigations, given: object) -> Term:
    check_condition(given)
    return _given(read, given)._term


def _check_measure(name: str, given: object) -> None:
    """`QueryError` TG114 for a constant as a measure: an option is meant that is called otherwise."""
    option = SEQUENCE_OPTIONS.get(name)
    if callable(given) or isinstance(given, ValueOfGroup):
        return
    # `partition_by=r.k` names the key, and is no measure of this name.
    if isinstance(given, Expression) and not _is_duration(given) and not (option and name.endswith("_by")):
        return
    near = nearest(name, _OPTIONS, 1)
    if option is not None:
        hint = f"write {SEQUENCE_VALUES[option]}"
    elif name in SEQUENCE_KEYWORDS:
        hint = SEQUENCE_KEYWORDS[name]
    else:
        hint = f"did you mean {near[0]}=? " if near else ""
        hint += (
            f"a measure is a function of the match, {name}=lambda m: m.A.x; a constant is added to the matches, "
            f".with_({name}=tg.lit(...))"
        )
    raise QueryError("TG114", f"{name}={shown(given)} is no option of sequences, and no measure", hint=hint)


def _is_duration(given: Expression) -> bool:
    return isinstance(given._term, Lit) and given._type == DURATION


def _measure(read: Navigations, given: object) -> Term:
    """A measure; attributes of the relation are those of the last row of the match."""
    part = _given(read, given)
    last = {
        name: attribute_name_of(read, name)
        for name in attributes_of(part._term)
        if name not in read.by_name and name in read.of.schema
    }
    return rename_attributes(part._term, last)


def attribute_name_of(read: Navigations, attribute: str) -> str:
    """The name of the value of an attribute in the last row of a match."""
    return next(iter(read.read(RowValue("", Attr(attribute), RowOf()))._reads))


def _within(given: Duration, relation: Relation, time: str) -> list[Limit]:
    if given is None:
        return []
    check_duration("within", given)
    ticks = duration_in_ticks(given, relation.schema[time].type, "within")
    if ticks < 0:
        raise QueryError("TG160", f"within={shown(given)} is negative", hint='write how long a match lasts: "5m"')
    return [whole_match(ticks)]


def _limits(read: Navigations, given: object, time: str) -> list[Limit]:
    """Limits as they are written: comparisons of instants of rows of the match."""
    if given is None:
        return []
    conditions = applied(given, MatchedRows(read), hint=_LIMIT_HINT) if callable(given) else given
    known = set(read.by_name)
    limits: list[Limit] = []
    for condition in listed(conditions):
        part = to_expression(condition)
        limits += _limits_of(read, temporal_formula(part._term, _instants(read, time)), part, time)
    for name in set(read.by_name) - known:
        read.by_name.pop(name)
    return limits


_LIMIT_HINT: Final = "write limits=lambda m: m.C.time - m.A.first().time <= tg.minutes(5)"


def _instants(read: Navigations, time: str) -> Mapping[str, Attribute]:
    """The navigations that are the instant of a row of the match, as attributes that hold instants."""
    type_ = read.of.schema[time].type
    return {
        name: Attribute(name, type_, nullable=False, temporal=True)
        for name, navigation in read.by_name.items()
        if isinstance(navigation, RowValue) and navigation.argument == Attr(time)
    }


def _limits_of(read: Navigations, formula: Formula, part: Expression, time: str) -> list[Limit]:
    match formula:
        case And(parts):
            return [limit for one in parts for limit in _limits_of(read, one, part, time)]
        case Compare(left, "<=" | "<" | ">=" | ">" | "=" as sign, right, _):
            first, second = _shifted(read, left), _shifted(read, right)
            if first is not None and second is not None:
                return _differences(first, sign, second)
    raise QueryError("TG116", f"{part!r} is no limit: it does not compare the instants of two rows", hint=_LIMIT_HINT)


def _shifted(read: Navigations, term: TemporalTerm) -> tuple[Point, int] | None:
    """A term as the instant of a row of the match plus so many ticks."""
    inner, by = (term.term, term.by) if isinstance(term, Shift) else (term, 0)
    if not isinstance(inner, Var):
        return None
    navigation = read.by_name[inner.name]
    assert isinstance(navigation, RowValue)
    row = navigation.row
    if row.offset or row.step or len(read.names_of(row.variables)) > 1:
        return None
    return Point(next(iter(read.names_of(row.variables)), None), row.end), by


def _differences(first: tuple[Point, int], sign: str, second: tuple[Point, int]) -> list[Limit]:
    (left, by_left), (right, by_right) = first, second
    upper = Limit(left, right, by_right - by_left - (sign == "<"))
    lower = Limit(right, left, by_left - by_right - (sign == ">"))
    return [*([upper] if sign in ("<", "<=", "=") else []), *([lower] if sign in (">", ">=", "=") else [])]


def _selection(options: SequenceOptions, variables: Sequence[str]) -> Selection:
    matches, skip = options.matches, options.skip
    if matches not in _SELECTIONS:
        raise QueryError(
            "TG114", f"matches={shown(matches)} is none of {', '.join(_SELECTIONS)}", hint='write matches="preferred"'
        )
    to, _, variable = skip.partition(" ") if isinstance(skip, str) else ("", "", "")
    if skip in ("past last row", "next row"):
        chosen = Skip("past last row" if skip == "past last row" else "next row")
    elif to in ("first", "last") and variable in variables:
        chosen = Skip("first" if to == "first" else "last", variable)
    else:
        raise QueryError("TG114", f"skip={shown(skip)} is none of {', '.join(_SKIPS)}", hint='write skip="next row"')
    if matches == "preferred":
        return Preferred(chosen)
    if skip != "past last row":
        raise QueryError(
            "TG114", f"matches={matches!r} has every match: none is skipped", hint="leave skip out, or matches"
        )
    return EveryMatch("contiguous" if matches == "contiguous" else "next" if matches == "next" else "any")


def _per_start(options: SequenceOptions) -> int | None:
    given = options.per_start
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        raise QueryError("TG114", f"per_start={shown(given)} is no number of matches", hint="write per_start=1000")
    if given >= _MOST_PER_START:
        raise QueryError(
            "TG114",
            f"per_start={shown(given)} limits nothing: matches are counted up to {_MOST_PER_START - 1:,}",
            hint="leave it out, or write one that memory has room for: per_start=1000",
        )
    if options.matches == "preferred":
        raise QueryError(
            "TG114",
            'matches="preferred" has one match of those that begin with a row: there is nothing to limit',
            hint='leave per_start out, or write matches="any"',
        )
    return given


def _reported(options: SequenceOptions) -> Reported:
    if options.rows not in ("one", "all"):
        raise QueryError("TG114", f"rows={shown(options.rows)} is none of one, all", hint='write rows="all"')
    return Reported("all" if options.rows == "all" else "one", options.empty, options.unmatched)
