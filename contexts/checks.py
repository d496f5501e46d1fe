"""What is wrong with the names of a model of contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.relation import is_identifier
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.transitions.definition import ContextType


def require_types(default: str, contexts: Sequence[str], causes: Mapping[str, object]) -> tuple[ContextType, ...]:
    """The types of a model; `QueryError` TG187 for names that are none or given twice, and for causes of no context."""
    names = [default, *contexts]
    for name in names:
        if not is_identifier(name):
            raise QueryError("TG187", f"{shown(name)} is no name of a context", hint="use letters, digits and _")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        hint = "the default is not among contexts=(...)" if twice == default else f"list {twice} once"
        raise QueryError("TG187", f"two contexts are called {twice}", hint=hint)
    if not contexts:
        raise QueryError("TG187", f"a model with the context {default} alone: it always holds", hint="name another one")
    for name, held_by in causes.items():
        if name == default:
            raise QueryError("TG187", f"{name} is the default context: it has no causes", hint="leave it out of causes")
        require_context(name, [ContextType(each) for each in names], "causes")
        if held_by not in ("bag", "set"):
            raise QueryError("TG187", f"causes of {name} are {shown(held_by)}", hint="they are a 'bag' or a 'set'")
    return tuple(ContextType(name, causes.get(name, "transition")) for name in names)  # type: ignore[arg-type]


def require_context(name: object, types: Iterable[ContextType], where: str) -> None:
    """`QueryError` TG187 for a context that a model does not have, with the one that is probably meant."""
    known = [type_.name for type_ in types]
    if name not in known:
        near = nearest(str(name), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise QueryError("TG187", f"{where} names {shown(name)}, which is no context of the model", hint=hint)


def require_contexts(names: Sequence[object], types: Sequence[ContextType], where: str) -> None:
    """`QueryError` TG187 for a context that a model does not have, or none at all."""
    if not names:
        raise QueryError("TG187", f"{where} names no context", hint="name one, or several of which one holds")
    for name in names:
        require_context(name, types, where)
