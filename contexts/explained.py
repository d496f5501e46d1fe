"""A model of contexts with what it implies, as text and as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.algebra.ordered.transitions.definition import ContextType
from tidegate.algebra.printing.graph import Edge, Graph, Vertex
from tidegate.analysis.ordered.transitions import does_text, where_text
from tidegate.contexts.asked import Asked
from tidegate.contexts.relations import Relations


def explained(
    name: str,
    keys: Sequence[str],
    default: str,
    types: Sequence[ContextType],
    asked: Sequence[Asked],
    relations: Relations,
) -> str:
    """Each context with what begins and ends it and what is known of others, then each deriving query with what it
    implies.
    """
    lines = [f"contexts {name} by {', '.join(keys) or '()'}"]
    for type_ in types:
        if type_.name == default:
            lines.append(f"{default}, the default: since ever, and wherever no other context holds")
            lines += _entry("begins", ["as the last of the others ends"])
            lines += _entry("ends", ["as another one begins"])
            continue
        held_by = "" if type_.held_by == "transition" else f", which holds until its {type_.held_by} of causes is empty"
        lines.append(f"{type_.name}{held_by}")
        lines += _entry("begins", [str(one.transition) for one in asked if _begins(one, type_.name)])
        lines += _entry("ends", [str(one.transition) for one in asked if ends(one, type_.name)])
        if around := relations.around(type_.name):
            lines += _entry("lies in", [f"{', '.join(around)}, wherever it holds"])
        overlapped = relations.overlapped_by(type_.name)
        lines += _entry("overlaps", [f"{other}: it begins while {other} holds" for other in overlapped])
        if others := relations.apart_from(type_.name):
            lines += _entry("apart from", [f"{', '.join(others)}: they never hold together"])
    for number, one in enumerate(asked):
        lines.append(f"{number}: {one.transition}")
        lines += _entry("where", [_where(one)])
        lines += _entry("does", [does_text(one.transition, types, default)])
        lines += _entry("keeps", [", ".join(one.values)] if one.values else [])
    return "\n".join(lines)


def _where(one: Asked) -> str:
    if one.everywhere and one.since is None:
        return "always, as it names no context"
    stands = "a context, as it names none, holds" if one.everywhere else where_text(one.transition)
    return stands if one.since is None else f"{stands}, and has held since before {one.since!r}"


def context_graph(default: str, types: Sequence[ContextType], asked: Sequence[Asked]) -> Graph:
    """The contexts, and an edge from each that a query stands in to the one that holds then, with what it does."""
    names = [type_.name for type_ in types]
    vertices = [Vertex("default" if type_.name == default else "context", type_.name, _about(type_, default))
                for type_ in types]  # fmt: skip
    labels: dict[tuple[int, int, bool], dict[str, None]] = {}
    for one in asked:
        for source, target, goes_on in _arrows(one, default):
            labels.setdefault((names.index(source), names.index(target), goes_on), {})[one.transition.action] = None
    edges = [
        Edge(source, target, " or ".join(actions), dotted=goes_on)
        for (source, target, goes_on), actions in labels.items()
    ]
    return Graph(tuple(vertices), tuple(edges))


def ends(one: Asked, context: str) -> bool:
    """Whether a query ends windows of a context that is not the default one."""
    transition = one.transition
    if transition.action == "terminate":
        return transition.context == context
    return transition.action == "switch" and context in transition.within


def _begins(one: Asked, context: str) -> bool:
    return one.transition.action != "terminate" and one.transition.context == context


def _arrows(one: Asked, default: str) -> Iterator[tuple[str, str, bool]]:
    """From where to where a query leads, and whether the context that it leaves goes on."""
    transition = one.transition
    if transition.action == "terminate":
        yield transition.context, default, False
        return
    for source in transition.within:
        stays = transition.action == "initiate" and source != default
        if source != transition.context or (transition.action == "switch" and source != default):
            yield source, transition.context, stays


def _about(type_: ContextType, default: str) -> str:
    if type_.name == default:
        return "the default"
    return "until it is ended" if type_.held_by == "transition" else f"until its {type_.held_by} of causes is empty"


def _entry(name: str, texts: Sequence[str]) -> list[str]:
    return [f"  {'' if i else name:<12}{text}" for i, text in enumerate(texts)]
