"""What a text of queries in contexts says, and the same as text again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.ordered.transitions.definition import Action
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.text.writer import Writer
from tidegate.contexts.model import ContextModel
from tidegate.contexts.text.language import CONTEXTS

_NAMES: Final = Writer(CONTEXTS)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a pattern, or one that must not come; `variable` names it in conditions, else its type does."""

    type: str
    variable: str | None
    absent: bool = False

    @property
    def name(self) -> str:
        return self.variable or self.type


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """A query: what it derives, of which events, where, in which contexts. `items` are values with their names."""

    action: Action | Literal["derive"]
    of: str
    items: tuple[tuple[Term, str], ...]
    events: tuple[Event, ...]
    where: Term | None
    cause: Term | None
    contexts: tuple[str, ...]


@checked_calls
@dataclass(frozen=True, slots=True, eq=False)
class ContextQueries:
    """A model of contexts with its deriving queries, and the results of its processing queries by name: what
    `tg.read_contexts` gives. `str()` is the text again.

    Examples:
        >>> text = "DERIVE Fast(c.car, c.time) PATTERN Cars c WHERE c.speed > 80 CONTEXT slow"
        >>> print(tg.read_contexts(text, {"Cars": cars}, model=traffic))
        DERIVE Fast(c.car, c.time)
        PATTERN Cars c
        WHERE c.speed > 80.0
        CONTEXT slow;
    """

    model: ContextModel
    results: Mapping[str, Relation]
    queries: tuple[ContextQuery, ...]
    head: str = ""

    def __str__(self) -> str:
        texts = [*([self.head] if self.head else []), *map(query_text, self.queries)]
        return "\n\n".join(f"{text};" for text in texts)

    def __repr__(self) -> str:
        return str(self)


def head_text(name: str, keys: Sequence[str], contexts: Sequence[tuple[str, str | None]], default: str) -> str:
    """The clause MODEL. Each context has what it is held by, if by causes."""
    by = f" BY {', '.join(map(_NAMES.name, keys))}" if keys else ""
    listed = (f"{_NAMES.name(context)}{f' HELD BY {held.upper()}' if held else ''}" for context, held in contexts)
    return f"MODEL {_NAMES.name(name)}{by}\nCONTEXT {', '.join(listed)}\nDEFAULT {_NAMES.name(default)}"


def query_text(query: ContextQuery) -> str:
    """A query as the text that is read."""
    name = _NAMES.name(query.of)
    items = ", ".join(_item(*item) for item in query.items)
    head = f"DERIVE {name}" if query.action == "derive" else f"{query.action.upper()} CONTEXT {name}"
    events = ", ".join(map(_event, query.events))
    lines = [f"{head}({items})" if items else head]
    lines.append(f"PATTERN {events}" if len(query.events) == 1 else f"PATTERN SEQ({events})")
    if query.where is not None:
        lines.append(f"WHERE {_TERMS.term(query.where)}")
    if query.cause is not None:
        lines.append(f"CAUSE {_TERMS.term(query.cause)}")
    if query.contexts:
        lines.append(f"CONTEXT {', '.join(map(_NAMES.name, query.contexts))}")
    return "\n".join(lines)


def _event(event: Event) -> str:
    variable = "" if event.variable is None else f" {_NAMES.name(event.variable)}"
    return f"{'NOT ' if event.absent else ''}{_NAMES.name(event.type)}{variable}"


def _item(term: Term, name: str) -> str:
    """A value with its name, which an attribute alone has of itself."""
    text = _TERMS.term(term)
    has_it = isinstance(term, Attr) and term.name.rpartition(".")[2] == name
    return text if has_it else f"{text} AS {_NAMES.name(name)}"


def _attribute(name: str) -> str:
    """An attribute with the name of its event before it, if it has one."""
    return ".".join(map(_NAMES.name, name.split(".", 1)))


_TERMS: Final = Writer(CONTEXTS, _attribute)
