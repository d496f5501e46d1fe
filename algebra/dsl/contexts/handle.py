"""What relations know of contexts: of a model, which is defined in a layer above, and of windows between rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import kind_of
from tidegate.algebra.errors import QueryError, Site

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
