"""Rows at whose instant a context holds: a look-up of the last change before, which never waits for a context's end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate.algebra.dsl.checks.relation import free_name
from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Select
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, END, START, TIME
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.types import STRING


@dataclass(frozen=True, slots=True)
class LookUp:
    """Which rows: those with these keys and instants, whose context is one of these, or none of them.

    With `since`, an earlier instant of a row, a context counts only if its window began before that: so all between the
    two lies in it.
    """

    changes: Relation
    default: str
    keys: tuple[str, ...]
    rows: Relation
    of: tuple[str, ...]
    at: str
    since: str | None = None

    def inside(self, contexts: tuple[str, ...], values: Mapping[str, str], site: Site | None) -> Relation:
        """The rows in one of the contexts, with attributes of its window under names of their own: those of a single
        one, or when the first of several that hold began.
        """
        node, groups = self.rows._node, self._together(contexts)
        if len(groups) == 1:
            node, here = self._with_change(node, groups[0], only=True)
            return self._relation(node, here, values, site)
        conditions: list[Term] = []
        for together in groups:
            node, here = self._with_change(node, together, only=False)
            conditions.append(conjunction([self._holds_in(together[0], here), *self._began(together[0], here)]))
        held = Project(Select(node, disjunction(conditions)), self.rows.schema.names)
        return self._relation(held, {}, {}, site)

    def outside(self, contexts: tuple[str, ...], site: Site | None) -> Relation:
        """The rows in none of the contexts."""
        node, kept = self.rows._node, self.rows.schema.names
        conditions: list[Term] = []
        for together in self._together(contexts):
            node, here = self._with_change(node, together, only=False)
            conditions.append(call("not", self._holds_in(together[0], here)))
        return self._relation(Project(Select(node, conjunction(conditions)), kept), {}, {}, site)

    def _together(self, contexts: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The contexts, those in one group that are looked up together: all but the default one."""
        others = tuple(dict.fromkeys(context for context in contexts if context != self.default))
        default: list[tuple[str, ...]] = [(self.default,)] if self.default in contexts else []
        return [others, *default] if others else default

    def _with_change(self, node: Node, contexts: tuple[str, ...], *, only: bool) -> tuple[Node, dict[str, str]]:
        """The rows with the last change before them of a context, or of several together, and the names of its
        attributes; `only` those rows where one of them holds.

        A window (t_i, t_t] has the row at its end and not the one at its beginning: the last change strictly before a
        row decides.
        """
        context, right = contexts[0], self._changes_of(contexts)
        node, of = _apart(node, self.of)
        here: dict[str, str] = {}
        for name in right.schema.names:
            here[name] = free_name(f"{' or '.join(contexts)} {name}", (*node.schema.names, *here.values()))
        right = Rename(right, tuple(here.items()))
        keys = tuple(here[key] for key in self.keys)
        is_default = context == self.default
        # The default context holds where nothing has changed yet: there the last change has to be known, not only a
        # window that holds.
        ended = None if is_default else ends(here[CHANGE])
        how: Literal["left", "inner"] = "inner" if only and not is_default else "left"
        looked = AsOf(node, right, of, keys, self.at, here[TIME], here[CHANGE], strict=True, how=how, ended=ended)
        holds = [self._holds_in(context, here)] if is_default else []
        conditions = [*holds, *self._began(context, here)] if only else []
        return Select(looked, conjunction(conditions)) if conditions else looked, here

    def _changes_of(self, contexts: tuple[str, ...]) -> Node:
        """The changes of a context, or of the windows of several put together."""
        of: list[Term] = [call("eq", Attr(CONTEXT), Lit(context, STRING)) for context in contexts]
        changes = Select(self.changes._node, disjunction(of))
        return changes if len(of) == 1 else GroupedWindows(changes, self.keys, contexts)

    def _holds_in(self, context: str, here: Mapping[str, str]) -> Term:
        return holds(here[CHANGE], self.of, is_default=context == self.default)

    def _began(self, context: str, here: Mapping[str, str]) -> list[Term]:
        """That the window began early enough, if that is asked for."""
        is_default = context == self.default
        return [] if self.since is None else [began_before(here[BEGAN], self.since, is_default=is_default)]

    def _relation(self, node: Node, here: Mapping[str, str], values: Mapping[str, str], site: Site | None) -> Relation:
        """The rows with their own attributes, and these of the window: by the names that are asked for."""
        kept = self.rows.schema.names
        pairs = tuple((here[name], new) for new, name in values.items())
        if here:
            node = Project(node, (*kept, *(old for old, _ in pairs)))
        node = Rename(node, pairs) if pairs else node
        origin = Origin("this in_context")
        origins = {name: self.rows._origins.get(name, origin) for name in node.schema}
        return self.rows._with(node, origins, site, (), (self.changes,))


def _apart(node: Node, keys: tuple[str, ...]) -> tuple[Node, tuple[str, ...]]:
    """The rows, and their attributes that are these keys: each another one, a copy where one is several keys."""
    apart: list[str] = []
    for key in keys:
        name = key
        if key in apart:
            name = free_name(f"{key} again", node.schema)
            node = Imbed(node, name, Attr(key))
        apart.append(name)
    return node, tuple(apart)


def holds(change: str, keys: Iterable[str], *, is_default: bool) -> Term:
    """Whether a context holds, of a row with these keys and its last change, under this name."""
    if not is_default:
        return call("is_not_null", Attr(change))
    started = call("coalesce", call("eq", Attr(change), Lit(START, STRING)), TRUE)
    return conjunction([started, *(call("is_not_null", Attr(key)) for key in keys)])


def began_before(began: str, since: str, *, is_default: bool) -> Term:
    """Whether a window that holds began before an instant. That of the default context may have held since ever."""
    before = call("lt", Attr(began), Attr(since))
    return call("coalesce", before, call("is_not_null", Attr(since))) if is_default else before


def ends(change: str) -> Term:
    """Whether a change ends a window."""
    return call("eq", Attr(change), Lit(END, STRING))
