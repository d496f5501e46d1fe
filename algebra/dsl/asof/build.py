"""How `asof_join` makes its node: keys, limits and choices as users write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import listed
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.asof import AsOf, Direction
from tidegate.algebra.terms import Term
from tidegate.algebra.types import DataType

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Column, Relation

#: Attributes that both sides have, by name, or pairs of an attribute of each side.
Keys: TypeAlias = "str | Iterable[str | tuple[Column, Column]]"
AsOfKind: TypeAlias = Literal["left", "inner"]


def asof_node(
    left: Relation,
    right: Relation,
    by: Keys,
    times: tuple[str, str],
    tie: str | None,
    direction: Direction,
    within: Duration,
    strict: bool,
    how: AsOfKind,
    ended: Term | None = None,
) -> AsOf:
    """The node; `QueryError` TG114 for a choice that there is not, TG160 for what is no duration."""
    require_one("direction", direction, ("backward", "forward", "nearest"))
    require_one("how", how, ("left", "inner"))
    require_one("strict", strict, (False, True))
    pairs = [_pair(left, right, key) for key in listed(by)]
    left_keys, right_keys = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    twice = next((key for key in left_keys if left_keys.count(key) > 1), None)
    if twice is not None:
        hint = f"copy it, and name the copy: with_(other={twice!r})"
        raise QueryError("TG103", f"{twice} stands for two keys", hint=hint)
    ticks = _ticks(within, left.schema[times[0]].type)
    return AsOf(left._node, right._node, left_keys, right_keys, *times, tie, direction, ticks, strict, how, ended)


def _pair(left: Relation, right: Relation, key: object) -> tuple[str, str]:
    if isinstance(key, tuple) and len(key) == 2:
        return left._name_of(key[0], "asof_join"), right._name_of(key[1], "asof_join")
    if not isinstance(key, str):
        raise QueryError(
            "TG114",
            f"{shown(key)} names no key of both sides",
            hint='by="symbol" is the name on both sides; by=[("symbol", "ticker")] are the names of the two',
        )
    return left._name_of(key, "asof_join"), right._name_of(key, "asof_join")


def _ticks(within: Duration, type_: DataType) -> int | None:
    check_duration("within", within)
    if within is None:
        return None
    ticks = duration_in_ticks(within, type_, "within")
    if ticks < 0:
        raise QueryError("TG160", f"within={shown(within)} is negative", hint="a partner is so far away at most")
    return ticks


def require_one(option: str, given: object, known: tuple[object, ...]) -> None:
    """`QueryError` TG114 for what is none of these."""
    if not any(given is choice or (isinstance(choice, str) and given == choice) for choice in known):
        names = ", ".join(map(repr, known[:-1]))
        raise QueryError("TG114", f"{option}={shown(given)}", hint=f"{option} is {names} or {known[-1]!r}")
