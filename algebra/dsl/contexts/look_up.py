"""Rows at whose instant a context holds: a look-up of the last change before, which never waits for a context's end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

from tidegate.algebra.dsl.checks.relation import free_name
from tidegate.algebra.dsl.expression import Origin
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Node, Project, Rename, Select
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import CHANGE, CONTEXT, END, START, TIME
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction
from tidegate.algebra.types import STRING


@dataclass(frozen=True, slots=True)
class LookUp:
    """Which rows: those with these keys and instants, whose context is one of these, or none of them."""

    changes: Relation
    default: str
    keys: tuple[str, ...]
    rows: Relation
    of: tuple[str, ...]
    at: str

    def inside(self, contexts: tuple[str, ...], values: Mapping[str, str], site: Site | None) -> Relation:
        """The rows in one of the contexts; of a single one with attributes of its window under names of their own."""
        if len(contexts) == 1:
            node, here = self._with_change(self.rows._node, contexts[0], only=True)
            return self._relation(node, here, values, site)
        node, conditions = self._looked_up(contexts)
        # Not flat: the fingerprint of a program depends on it.
        return self._where(node, reduce(partial(call, "or"), conditions), site)

    def outside(self, contexts: tuple[str, ...], site: Site | None) -> Relation:
        """The rows in none of the contexts."""
        node, conditions = self._looked_up(contexts)
        return self._where(node, conjunction([call("not", condition) for condition in conditions]), site)

    def _looked_up(self, contexts: tuple[str, ...]) -> tuple[Node, list[Term]]:
        """The rows with the last changes of contexts before them, and for each context whether it holds."""
        node, conditions = self.rows._node, list[Term]()
        for context in contexts:
            node, here = self._with_change(node, context, only=False)
            conditions.append(self._holds_in(context, here))
        return node, conditions

    def _where(self, node: Node, condition: Term, site: Site | None) -> Relation:
        return self._relation(Project(Select(node, condition), self.rows.schema.names), {}, {}, site)

    def _with_change(self, node: Node, context: str, *, only: bool) -> tuple[Node, dict[str, str]]:
        """The rows with the last change of a context before them, and the names of its attributes; `only` those rows
        where it holds.

        A window (t_i, t_t] has the row at its end and not the one at its beginning: the last change strictly before a
        row decides.
        """
        changes = self.changes.schema
        here: dict[str, str] = {}
        for name in changes.names:
            here[name] = free_name(f"{context} {name}", (*node.schema.names, *here.values()))
        right: Node = Select(self.changes._node, call("eq", Attr(CONTEXT), Lit(context, STRING)))
        right = Rename(right, tuple(here.items()))
        keys = tuple(here[key] for key in self.keys)
        is_default = context == self.default
        # The default context holds where nothing has changed yet: there the last change has to be known, not only a
        # window that holds.
        ended = None if is_default else ends(here[CHANGE])
        how: Literal["left", "inner"] = "inner" if only and not is_default else "left"
        looked = AsOf(node, right, self.of, keys, self.at, here[TIME], here[CHANGE], strict=True, how=how, ended=ended)
        if only and is_default:
            return Select(looked, self._holds_in(context, here)), here
        return looked, here

    def _holds_in(self, context: str, here: Mapping[str, str]) -> Term:
        return holds(here[CHANGE], self.of, is_default=context == self.default)

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


def holds(change: str, keys: Iterable[str], *, is_default: bool) -> Term:
    """Whether a context holds, of a row with these keys and its last change, under this name."""
    if not is_default:
        return call("is_not_null", Attr(change))
    started = call("coalesce", call("eq", Attr(change), Lit(START, STRING)), TRUE)
    return conjunction([started, *(call("is_not_null", Attr(key)) for key in keys)])


def ends(change: str) -> Term:
    """Whether a change ends a window."""
    return call("eq", Attr(change), Lit(END, STRING))
