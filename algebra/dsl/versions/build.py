"""Changes of what keys stand for, as a table of versions: each holds until the next change of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.algebra.dsl.asof.build import AsOfKind, Keys, asof_node
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.checks.relation import listed
from tidegate.algebra.dsl.expression import Expression, Origin
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.over.build import UNTIL, versions_node
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node, Select, check_condition
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import FALSE, Attr, Term, call, conjunction

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Column, Relation


@checked_calls
class Versioned:
    """A stream of changes as a table: a change is a version of what its key stands for, from its instant up to that of
    the next change of the key. A deletion ends a version and is none.

    `relation.temporal_join` asks for the version that holds at the instant of each row; `history` has them all.

    Examples:
        >>> cars.versioned(by="car", deleted=cars.speed < 60)
        versions by car in order of time, none after speed < 60.0
    """

    __slots__ = ("_deleted", "_keys", "_of", "_tie", "_time")

    def __init__(
        self, of: Relation, keys: tuple[str, ...], time: str, tie: str | None, deleted: Expression | None
    ) -> None:
        self._of, self._keys, self._time, self._tie, self._deleted = of, keys, time, tie, deleted
        if deleted is not None:
            check_condition(deleted._term, of.schema)

    def __repr__(self) -> str:
        order = self._time if self._tie is None else f"{self._time}, {self._tie}"
        ended = "" if self._deleted is None else f", none after {self._deleted!r}"
        return f"versions by {', '.join(self._keys)} in order of {order}{ended}"

    @property
    def schema(self) -> Schema:
        """Attributes of a version, in order.

        Examples:
            >>> print(cars.versioned(by="car").schema)
            car string, time bigint not null, speed double, accel double
        """
        return self._of.schema

    def history(self) -> Relation:
        """All versions with the instant `until` at which each ends: it holds in [time, until).

        A version is complete when the next change of its key is there. What still holds is not reported, unless it is
        said where the input ends (`close_at`). A version that is changed at the instant at which it begins is none.

        Examples:
            >>> show(cars.versioned(by="car", deleted=cars.speed == 95).history().select("time", "until", "speed"))
            1, 2, 60.0
            2, 3, 90.0
            4, 5, 85.0
            5, 6, 60.0
        """
        with Here() as site:
            versions = versions_node(self._of._node, self._keys, self._time, self._tie)
            conditions: list[Term] = [call("lt", Attr(self._time), Attr(UNTIL))]
            parts: list[Expression] = []
            if self._deleted is not None:
                conditions.append(call("not", call("coalesce", self._deleted._term, FALSE)))
                parts.append(self._deleted)
            node = Select(versions, conjunction(conditions))
            origin = Origin("this history")
            return self._of._with(
                node, {name: self._of._origins.get(name, origin) for name in node.schema}, site, parts
            )


def temporal_join_node(left: Relation, right: Versioned, on: Keys, at: str, how: AsOfKind) -> Node:
    """The rows, each with the version that holds at its instant; `QueryError` TG114 for other keys than the table's."""
    keys = right._keys
    pairs: list[str | tuple[Column, Column]] = [*listed(on)] or [key.rpartition(".")[2] for key in keys]
    ended = None if right._deleted is None else right._deleted._term
    node = asof_node(left, right._of, pairs, (at, right._time), right._tie, "backward", None, False, how, ended)
    if sorted(node.right_keys) != sorted(keys):
        named = ", ".join(node.right_keys) or "none"
        raise QueryError(
            "TG114",
            f"temporal_join compares {named}, and versions are those of {', '.join(keys) or 'all rows'}",
            hint=f"compare the whole key, each attribute once: on=[{', '.join(f'(..., {key!r})' for key in keys)}]",
        )
    return node
