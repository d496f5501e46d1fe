"""Rows with the row of another relation nearest in time, as ASOF JOIN has it: node, schema, meaning and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluator, key_of
from tidegate.algebra.nodes import (
    Aggregation,
    Node,
    OrderedNode,
    Reading,
    Row,
    check_condition,
    require_attribute,
)
from tidegate.algebra.ordered.events import in_order, instant_of, partitions
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Term
from tidegate.algebra.time import ONE_TYPE
from tidegate.algebra.typed.operations import resolve

Direction: TypeAlias = Literal["backward", "forward", "nearest"]

#: The attribute that says when a row was complete, of rows that wait for rows after them.
COMPLETE: Final = "complete"
#: How a right row lies to the left one, as people read it, where one at the same instant counts and where it does not.
_SIGNS: Final = {"backward": ("<=", "<"), "forward": (">=", ">"), "nearest": ("near", "near, not at")}


@dataclass(frozen=True, slots=True, eq=False)
class AsOf(OrderedNode):
    """The rows of the left relation, each with one row of the right one: of those with equal keys the nearest in time.

    backward: the last one at or before the left row's instant. forward: the first one at or after it. nearest: that of
    the two which is not as far away; of two at one distance the earlier. With `strict` none at that instant itself;
    with `within` none that is more than so many ticks away. A left row without such a row has NULLs (`how` "left") or
    is no row of the result ("inner"). A key that is NULL equals none.

    Right rows of one instant are ordered by `tie`; without one they are an error, whether a left row looks at them or
    not.

    A row is complete at its own instant where it looks back. Else `complete` says when: at the instant of the right row
    it waits for, or when none can come any more that would be its own. A row that still waits when the input ends is
    not reported. A row with a key that is NULL waits for nothing.

    A right row for which `ended` is true says that its key has none from then on, until the next one: a left row that
    looks back at it has none behind.
    """

    left: Node
    right: Node
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left_time: str
    right_time: str
    tie: str | None = None
    direction: Direction = "backward"
    within: int | None = None
    strict: bool = False
    how: Literal["left", "inner"] = "left"
    ended: Term | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        left, right = frozenset(self.left.schema.names), frozenset(self.right.schema.names)
        return (
            Reading(self.left, self.left_keys, left, self.left_time),
            Reading(self.right, self.right_keys, right, self.right_time, self.tie, self._terms),
        )

    @property
    def ordered_inputs(self) -> tuple[int, ...]:
        """The right one: no left row depends on another."""
        return (1,)

    @property
    def wakes(self) -> bool:
        return self.waits or self.within is not None

    @property
    def needed_inputs(self) -> tuple[int, ...]:
        """The right one alone, where a left row without a row behind it is none of the result."""
        return (1,) if self.how == "inner" and not self.waits else (0, 1)

    def over(self, inputs: tuple[Node, ...]) -> AsOf:
        left, right = inputs
        return replace(self, left=left, right=right)

    @property
    def _terms(self) -> tuple[Term, ...]:
        """The terms that are evaluated for each right row."""
        return () if self.ended is None else (self.ended,)

    @property
    def waits(self) -> bool:
        """Whether rows wait for rows after them."""
        return self.direction != "backward"

    @property
    def leaves_open(self) -> bool:
        return self.waits

    @property
    def completed_by(self) -> str:
        return COMPLETE if self.waits else self.left_time

    @property
    def produces(self) -> str:
        return "rows"

    def infer_schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        for names, schema in (((*self.left_keys, self.left_time), left), ((*self.right_keys, self.right_time), right)):
            for name in names:
                require_attribute(name, schema)
        if self.tie is not None:
            require_attribute(self.tie, right)
        for term in self._terms:
            check_condition(term, right)
        for time, schema in ((self.left_time, left), (self.right_time, right)):
            if not schema[time].temporal:
                raise QueryError("TG117", f"{time!r} orders no rows: it holds no instants", hint="name an instant")
        pairs = [*zip(self.left_keys, self.right_keys, strict=True), (self.left_time, self.right_time)]
        for first, second in pairs:
            if left[first].type != right[second].type:
                raise QueryError(
                    "TG102",
                    f"{first!r} is {left[first].type}, {second!r} is {right[second].type}",
                    hint=ONE_TYPE if left[first].temporal and right[second].temporal else "cast one side",
                )
        twice = next((name for name in right if name in left), None)
        if twice is not None:
            raise QueryError("TG103", f"ambiguous name {twice!r}: both sides have it", hint="rename one")
        its = right.attributes if self.how == "inner" else tuple(a.as_nullable() for a in right.attributes)
        if not self.waits:
            return Schema((*left.attributes, *its))
        if COMPLETE in left or COMPLETE in right:
            raise QueryError(
                "TG103",
                f"{COMPLETE!r} says when a row is complete that looks ahead, and there is such an attribute",
                hint=f'rename it first: rename({COMPLETE}="...")',
            )
        return Schema((*left.attributes, *its, Attribute(COMPLETE, left[self.left_time].type, False, True)))

    def rows(self, inputs: Sequence[Sequence[Row]], aggregation: Aggregation) -> list[Row]:
        left, right = self.readings
        place = left.input.schema.names.index(self.left_time)
        keys = [left.input.schema.names.index(key) for key in self.left_keys]
        its = [right.input.schema.names.index(key) for key in self.right_keys]
        with_keys = [row for row in inputs[1] if all(row[key] is not None for key in its)]
        by_key = {tuple(map(key_of, key)): in_order(right, members) for key, members in partitions(right, with_keys)}
        results: list[Row] = []
        for row in inputs[0]:
            key = tuple(row[key] for key in keys)
            at = instant_of(row[place])
            known = by_key.get(tuple(map(key_of, key)), ())
            partner, complete = (None, at) if None in key else self.partner(at, known)
            if complete is None or (partner is None and self.how == "inner"):
                continue
            values = (None,) * len(right.input.schema) if partner is None else partner
            results.append((*row, *values, *((complete,) if self.waits else ())))
        return results

    def partner(self, at: int, events: Sequence[Row]) -> tuple[Row | None, int | None]:
        """Of right rows in order the one of a left row at an instant, and when that is known; None: never."""
        place = self.right.schema.names.index(self.right_time)
        times = [(instant_of(event[place]), event) for event in events]
        behind = [(at - time, event) for time, event in times if time < at or (time == at and not self.strict)]
        ahead = [(time - at, event) for time, event in times if time > at or (time == at and not self.strict)]
        before = self.fitting([last for last in behind[-1:] if not self.ends(last[1])])
        after = self.fitting(ahead[:1])
        if self.direction == "backward":
            return (before[1] if before else None), at
        if self.direction == "forward":
            before = None
        if after and (before is None or after[0] < before[0]):
            return after[1], at + after[0]
        if before:
            return before[1], at + before[0]
        return None, None if self.within is None else at + self.within

    def fitting(self, candidates: Sequence[tuple[int, Row]]) -> tuple[int, Row] | None:
        """The row at its distance, unless it is too far away."""
        return next((candidate for candidate in candidates if self.within is None or candidate[0] <= self.within), None)

    def ends(self, event: Row) -> bool:
        """Whether a right row says that its key has none from then on."""
        schema = self.right.schema
        row = dict(zip(schema.names, event, strict=True))
        return any(evaluator(resolve(term, schema))(row) is True for term in self._terms)

    def text(self, inputs: Sequence[str]) -> str:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        by = ", ".join(left if left == right else f"{left} = {right}" for left, right in pairs) or "()"
        sign = _SIGNS[self.direction][self.strict]
        tie = "" if self.tie is None else f", {self.tie}"
        limit = "" if self.within is None else f" within {ticks_text(self.within, self.schema[self.left_time].type)}"
        ended = "" if self.ended is None else f", none after {term_text(self.ended)}"
        return (
            f"{self.how} asof join {inputs[0]} with {inputs[1]} by {by}, "
            f"{self.direction}: {self.right_time}{tie} {sign} {self.left_time}{limit}{ended}"
        )
