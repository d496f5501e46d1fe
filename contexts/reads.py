"""What rows that a model of contexts is given must not read: the model itself, and streams that are named like it."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.nodes import Group, Join, Node, OrderedNode, Project, Rename, Select, nodes_of, occurrences
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import Transition
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.terms import attributes_of


def require_other_contexts(model: str, rows: Relation, transition: Transition) -> None:
    """`QueryError` TG211 for rows of a transition that read the contexts of its own model."""
    streams = _query_nodes(rows)
    if not isinstance(streams.get(model), Transitions):
        return
    message = f"the query of {transition.action} {transition.context} reads contexts of {model}, its own model"
    because = "a transition is judged by what held before its rows, and its query cannot ask for that"
    nodes = [rows._node, *(node for name, node in streams.items() if node is not None and name != model)]
    looked_up = any(_looks_up(node, model) for node in nodes)
    counts = any(_counts(node, model) for node in nodes)
    read = {*rows.schema.names, *_compared(nodes)}
    values = [name for name in dict.fromkeys(value for node in nodes for value in _values(node, model)) if name in read]
    mend = _mend(transition, looked_up=looked_up, counts=counts, values=values)
    raise QueryError.of([Problem("TG211", message, None, (because,), mend)])


def require_free_name(model: str, rows: Relation, where: str) -> None:
    """`QueryError` TG122 for rows that read a stream with the name of a model; `where` it is read, as errors say it."""
    read = _query_nodes(rows)
    if model in read and not isinstance(read[model], Transitions):
        message = f"{model} is the name of a model of contexts and of a stream that is read {where}"
        raise QueryError("TG122", message, hint="give the model another name")


def _mend(transition: Transition, *, looked_up: bool, counts: bool, values: list[str]) -> str:
    """How a transition is said that asks for contexts of its own model: which hold, when they began or ended, which
    values their windows have, or what several rows in them say together.
    """
    if counts:
        return (
            f"{transition.action} it at single rows, at the last of a pattern of so many rows, since= its first, or so "
            "long after it began: when=tg.between(opens, closes, at_most=...)"
        )
    if values:
        return (
            f"{' and '.join(values)} {'are' if len(values) > 1 else 'is'} of a window, which is not known yet: take "
            f"{'them' if len(values) > 1 else 'it'} from the rows that begin windows. If each of them begins one anew, "
            "that is the last one before a row, rows.asof_join(begins, by=..., strict=True, how='inner'); else the "
            "first of a row pattern, 'Begin Other*? End', at='detected'"
        )
    if transition.action == "terminate":
        if looked_up:
            return f"leave in_context out: the query stands in {transition.context} already, which it ends"
        return (
            "a context that ends so long after it began is ended by windows of rows: "
            f"terminate({transition.context!r}, when=tg.between(opens, closes, at_most=...), at='end')"
        )
    if looked_up:
        return "leave in_context out, and name the contexts in which the query stands: within=..."
    return "say by which rows these contexts begin and end, and in which contexts the query stands: within=..."


def _looks_up(query: Node, model: str) -> bool:
    """Whether a query has rows in contexts of a model, or in none."""
    return any(
        isinstance(node, AsOf) and any(stream.name == model for stream in occurrences(node.right))
        for node in nodes_of(query)
    )


def _values(query: Node, model: str) -> list[str]:
    """The attributes of windows that rows in contexts of a model have, by their names there."""
    found: list[str] = []
    for node in nodes_of(query):
        if isinstance(node, Rename) and isinstance(node.input, Project):
            below = node.input.input
            below = below.input if isinstance(below, Select) else below
            if isinstance(below, AsOf) and any(stream.name == model for stream in occurrences(below.right)):
                found += [new for old, new in node.pairs if old in below.right.schema]
    return found


def _compared(queries: Sequence[Node]) -> set[str]:
    """The attributes that conditions on rows, or on pairs of rows, read."""
    nodes = (node for query in queries for node in nodes_of(query) if isinstance(node, Select | Join))
    return {name for node in nodes for name in attributes_of(node.condition)}


def _counts(query: Node, model: str) -> bool:
    """Whether a query groups rows in contexts of a model, or reads them in order."""
    return any(
        isinstance(node, Group | OrderedNode) and not isinstance(node, AsOf) and _looks_up(node, model)
        for node in nodes_of(query)
    )


def _query_nodes(rows: Relation) -> dict[str, Node | None]:
    """The streams that rows read, directly or through results, each with its query where that is known."""
    found: dict[str, Node | None] = {stream.name: None for stream in occurrences(rows._node)}
    waiting = list(rows._results.items())
    known = set[str]()
    while waiting:
        name, result = waiting.pop()
        if name in known or result._fed_by is None:
            continue
        known.add(name)
        found.update({stream.name: found.get(stream.name) for stream in occurrences(result._fed_by.node)})
        found[name] = result._fed_by.node
        waiting += result._fed_reads.items()
    return found
