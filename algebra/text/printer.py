"""Queries as text: the inverse of `reader`, for what the language can say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tidegate.algebra.allen import INTERSECTS, Allen, intersection
from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called
from tidegate.algebra.dsl.checks.relation import what_else
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select
from tidegate.algebra.ordered.derive import END, START, Derive
from tidegate.algebra.ordered.match.node import DETECTED, Match
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import Attr, Call, Term, conjuncts
from tidegate.algebra.text.interval_sequences.printer import interval_sequence_text
from tidegate.algebra.text.reader import DIALECTS, MIRRORED, Dialect
from tidegate.algebra.text.returned import AGGREGATES, plain_name
from tidegate.algebra.text.row_patterns.printer import row_pattern_query
from tidegate.algebra.text.situations import SITUATIONS
from tidegate.algebra.text.writer import Writer, cannot, written_ticks

#: Relations whose conditions stand in patterns; the others are these with sides exchanged.
_PRINTED: Mapping[str, Callable[[Term, Term, Term, Term], Term]] = {
    **{
        relation.value: relation.condition
        for relation in (
            Allen.BEFORE,
            Allen.MEETS,
            Allen.OVERLAPS,
            Allen.FINISHED_BY,
            Allen.CONTAINS,
            Allen.STARTS,
            Allen.EQUALS,
        )
    },
    INTERSECTS: intersection,
}
_MIRRORED_NAMES = {relation.value: mirrored.value for relation, mirrored in MIRRORED.items()}
Pair = tuple[str, str, str]
_WRITER: Final = Writer(SITUATIONS)


@called()
def query_text(relation: Relation, *, dialect: Dialect = "allen") -> str:
    """A match of situations, of intervals or of a row pattern, in the text language, for `read_query` with this
    dialect; `QueryError` TG175 for what that language cannot say. Of a row pattern over anything but a stream itself
    it is the clause that `relation.match_recognize` takes.

    Examples:
        >>> print(tg.query_text(tg.match(Fast.overlaps(Braking), within=10)), end="")
        FROM Cars
        ORDER BY time
        PARTITION BY car
        DEFINE Fast AS speed > 80.0,
               Braking AS accel < -2.0
        PATTERN Fast overlaps Braking
        WITHIN 10
    """
    with Here():
        if not isinstance(relation, Relation):
            raise QueryError(
                "TG114", f"query_text got {what_else(relation)}", hint="give it a match of situations or rows"
            )
        if dialect not in DIALECTS:
            raise QueryError("TG114", f"no dialect is called {shown(dialect)}", hint="dialect is allen or tpstream")
        return node_query(relation._node, dialect)


def node_query(node: Node, dialect: Dialect = "allen") -> str:
    """The text of a query by its node."""
    if isinstance(node, Sequences):
        return row_pattern_query(node)
    if isinstance(node, Select) and isinstance(node.input, Match) and not _derived(node.input):
        return interval_sequence_text(node.input, node.condition)
    match, columns = _match_of(node)
    derived = _derived(match)
    if not derived and node is match:
        return interval_sequence_text(match)
    if len(derived) < len(match.situations):
        raise cannot("interval streams beside situations" if derived else "attributes selected of an interval sequence")
    first = derived[0]
    for symbol, derivation in zip(match.symbols, derived, strict=True):
        if (derivation.input, derivation.time, derivation.tie) != (first.input, first.time, first.tie):
            raise cannot(f"situations of several streams or orders ({symbol} is of another than {match.symbols[0]})")
    if not isinstance(first.input, Scan):
        raise cannot("situations of anything but a stream itself", "give the filtered stream as a result of its own")
    order = [first.time] if first.tie is None else [first.time, first.tie]
    lines = [f"FROM {_WRITER.name(first.input.stream.name)}", f"ORDER BY {', '.join(map(_WRITER.name, order))}"]
    if match.keys:
        lines.append(f"PARTITION BY {', '.join(map(_WRITER.name, match.keys))}")
    definitions = [f"{s} AS {_definition(d)}" for s, d in zip(match.symbols, derived, strict=True)]
    lines.append("DEFINE " + ",\n       ".join(definitions))
    constraints = list(_constraints(match.pattern, dialect))
    if constraints:
        lines.append("PATTERN " + "\n    AND ".join(constraints))
    if match.within is not None:
        lines.append(f"WITHIN {_ticks(match.within, first)}")
    if node is not match or any(situation.aggregates for situation in derived):
        if DETECTED not in columns.values():
            raise cannot("results without their time", "select the attribute detected, too")
        lines.append("RETURN " + ",\n       ".join(_item(name, source, match) for name, source in columns.items()))
    if match.emission != "earliest":
        lines.append(f"EMIT {match.emission}")
    return "\n".join(lines) + "\n"


def _derived(match: Match) -> tuple[Derive, ...]:
    return tuple(situation for situation in match.situations if isinstance(situation, Derive))


def _match_of(node: Node) -> tuple[Match, Mapping[str, str]]:
    """The match below what RETURN does, and the attribute of it that each attribute of the result is."""
    match node:
        case Match():
            return node, {name: name for name in node.schema}
        case Project(input_, names):
            match, columns = _match_of(input_)
            return match, {name: columns[name] for name in names}
        case Rename(input_, pairs):
            match, columns = _match_of(input_)
            new = dict(pairs)
            return match, {new.get(name, name): source for name, source in columns.items()}
        case Imbed(input_, name, Attr(of)):
            match, columns = _match_of(input_)
            return match, {**columns, name: columns[of]}
        case _:
            raise cannot(
                f"{type(node).__name__.lower()} here", "only a match and select(...) of its attributes can be text"
            )


def _definition(node: Derive) -> str:
    text = _WRITER.term(node.condition)
    least = None if node.at_least == 1 else _ticks(node.at_least, node)
    most = None if node.at_most is None else _ticks(node.at_most, node)
    if most is not None and least is not None:
        return f"{text} BETWEEN {least} AND {most}"
    if most is not None:
        return f"{text} AT MOST {most}"
    return text if least is None else f"{text} AT LEAST {least}"


def _ticks(amount: int, node: Derive) -> str:
    return written_ticks(amount, node.input.schema[node.time].type)


# PATTERN -------------------------------------------------------------------------------------------------------------


def _constraints(pattern: Term, dialect: Dialect) -> Iterator[str]:
    """The constraints of a pattern. A relation can be several conjuncts, which follow each other."""
    rest = conjuncts(pattern)
    while rest:
        first = rest[0]
        if isinstance(first, Call) and first.op == "or":
            yield _alternatives([_whole_relation(part) for part in first.args], dialect)
            rest = rest[1:]
        else:
            pair, used = _relation(rest)
            yield _alternatives([pair], dialect)
            rest = rest[used:]


def _whole_relation(term: Term) -> Pair:
    parts = conjuncts(term)
    pair, used = _relation(parts)
    if used != len(parts):
        raise cannot(f"pattern {term_text(term)}", "patterns relate situations by Allen's relations")
    return pair


def _relation(parts: tuple[Term, ...]) -> tuple[Pair, int]:
    """The relation that the first of these conditions state, and how many of them do."""
    ends = [arg.name for arg in parts[0].args if isinstance(arg, Attr)] if isinstance(parts[0], Call) else []
    symbols = [name.rsplit(".", 1)[0] for name in ends]
    if len(symbols) == 2:
        first, second = symbols
        points = [Attr(f"{symbol}.{end}") for symbol in symbols for end in (START, END)]
        for relation, condition in _PRINTED.items():
            stated = conjuncts(condition(*points))
            if parts[: len(stated)] == stated:
                return (first, relation, second), len(stated)
    raise cannot(f"pattern {term_text(parts[0])}", "patterns relate situations by Allen's relations")


def _alternatives(pairs: list[Pair], dialect: Dialect) -> str:
    """`A meets;overlaps B; C during B`: what relates the same two in a row is written together."""
    groups: list[tuple[str, list[str], str]] = []
    for first, relation, second in pairs:
        meant = _MIRRORED_NAMES.get(relation, relation) if dialect == "tpstream" else relation
        name = meant.replace("_", " ")
        if groups and (groups[-1][0], groups[-1][2]) == (first, second):
            groups[-1][1].append(name)
        else:
            groups.append((first, [name], second))
    return "; ".join(f"{first} {';'.join(names)} {second}" for first, names, second in groups)


# RETURN --------------------------------------------------------------------------------------------------------------


def _item(name: str, source: str, match: Match) -> str:
    """An item, with its name where the reader would give it another."""
    read = source
    if source in match.keys or source == DETECTED:
        text = _WRITER.name(source)
    else:
        symbol, attribute = source.split(".", 1)
        situation = match.situations[match.symbols.index(symbol)]
        assert isinstance(situation, Derive)
        aggregate = next((a for a in situation.aggregates if a.name == attribute), None)
        if aggregate is None:
            text = f"{symbol}.{attribute}"
        else:
            text, read = _aggregate(symbol, aggregate, situation), f"{symbol}.{_name_in_returns(aggregate)}"
    if name == DETECTED != source:
        raise cannot(f"attribute {DETECTED} but the time of a match", "give it another name")
    return text if name == read else f"{text} AS {_WRITER.name(name)}"


def _name_in_returns(aggregate: Aggregate) -> str:
    return plain_name(
        aggregate.function.value, aggregate.argument.name if isinstance(aggregate.argument, Attr) else None
    )


def _aggregate(symbol: str, aggregate: Aggregate, situation: Derive) -> str:
    function = aggregate.function.value
    if function not in AGGREGATES or aggregate.by != (Attr(situation.time) if aggregate.entry.ordered else None):
        raise cannot(f"aggregate {aggregate.name} as it is", f"there are {', '.join(AGGREGATES)}, the last two by time")
    match aggregate.argument:
        case None:
            return f"{function}({symbol})"
        case Attr(name):
            return f"{function}({symbol}.{_WRITER.name(name)})"
        case term:
            raise cannot(f"aggregate of {term_text(term)}", "only attributes are aggregated; compute it in the stream")
