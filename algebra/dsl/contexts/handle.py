"""What relations know of contexts: of a model, which is defined in a layer above, and of windows between rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.schema import Schema

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Column, Relation


class Contexts:
    """A model of contexts, or windows between rows, as relations see it: it keeps those of their rows that lie in
    contexts, or in none.
    """

    __slots__ = ()

    def _inside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        since: str | None,
        values: Mapping[str, str],
        site: Site | None,
    ) -> Relation:
        raise NotImplementedError

    def _outside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        site: Site | None,
    ) -> Relation:
        raise NotImplementedError


def require_since(since: str | None, at: str, schema: Schema) -> None:
    """`QueryError` TG102 for an instant since which a context is to have held that is of another type than the one at
    which it holds.
    """
    if since is not None and schema[since].type != schema[at].type:
        raise QueryError(
            "TG102", f"{since!r} is {schema[since].type}, and {at!r} {schema[at].type}", hint="cast one of them"
        )


def require_values(values: Mapping[str, str]) -> None:
    """`QueryError` TG103 for an attribute of a window under two names."""
    given = list(values.values())
    for place, (name, of) in enumerate(values.items()):
        first = [*values][given.index(of)]
        if given.index(of) < place:
            message = f"values has {shown(of)} twice, as {first} and as {name}"
            raise QueryError("TG103", message, hint=f"ask for it once, and copy it: rows.with_({name}=rows.{first})")


def require_model(model: object, where: str) -> Contexts:
    """`QueryError` TG114 for what is neither a model of contexts nor windows between rows."""
    if not isinstance(model, Contexts):
        raise QueryError(
            "TG114",
            f"{where} got {kind_of(model)}, not a model of contexts",
            hint=f'write {where}(model, "congestion"), where model = tg.context_model(...), or {where}(windows), where '
            "windows = tg.between(...) as it is: what is selected of it are rows",
        )
    return model
