"""What conditions come to that read rows behind their own, and the row by which that is known (R41)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from tidegate.algebra.ordered.sequences.certainty.prepared import atoms_of
from tidegate.algebra.terms import Call, Term, attributes_of
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.sequences.threads import NOWHERE
from tidegate.runtime.ordered.sequences.rows import OrderedRows

#: Of a condition that turns out not to hold, no row by which it is known that it does.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Outcomes:
    """By row, what a condition can be: true, false, NULL, or without a value."""

    true: BoolArray
    false: BoolArray
    null: BoolArray
    none: BoolArray

    def both(self, other: Outcomes) -> Outcomes:
        """Of this one and then the other."""
        on = self.true | self.null
        return Outcomes(
            self.true & other.true,
            self.false | (on & other.false),
            (self.null & (other.true | other.null)) | (self.true & other.null),
            self.none | (on & other.none),
        )

    def either(self, other: Outcomes) -> Outcomes:
        """Of this one or else the other."""
        return self.negated().both(other.negated()).negated()

    def negated(self) -> Outcomes:
        return Outcomes(self.false, self.true, self.null, self.none)

    @property
    def decided(self) -> BoolArray:
        """Whether it is true whatever comes, or can not be true."""
        return ~self.true | ~(self.false | self.null | self.none)


def verdicts(
    rows: OrderedRows, conditions: Sequence[Sequence[Term]], satisfied: Int64Array, *, closed: bool
) -> tuple[Int64Array, Int64Array]:
    """For each of the variables that have such conditions, and each row: the place of the row by which all are known to
    hold, and of that by which one is known not to, or `NOWHERE`. That behind the last row of a partition stands for
    rows to come, or where the input is `closed` for its end.

    Takes from `satisfied`, by row a mask of variables, what the rows up to their own show not to hold.
    """
    waiting = [(number, some) for number, some in enumerate(conditions) if some]
    sure = np.full((len(waiting), rows.height), UNKNOWN, dtype=np.int64)
    gone = np.full((len(waiting), rows.height), NOWHERE, dtype=np.int64)
    here = np.arange(rows.height)
    for place, (number, some) in enumerate(waiting):
        for condition in some:
            by, true = _decided(rows, condition, closed=closed)
            sure[place] = np.where(true & (by > here), np.maximum(sure[place], by), sure[place])
            gone[place] = np.where(true, gone[place], np.minimum(gone[place], by))
        satisfied[gone[place] <= here] &= ~(1 << number)
    return sure, gone


def _decided(rows: OrderedRows, condition: Term, *, closed: bool) -> tuple[Int64Array, BoolArray]:
    """By row, the place of the row by which it is known what a condition comes to, and whether it is true then."""
    here, end = np.arange(rows.height), np.repeat(rows.offsets[1:], np.diff(rows.offsets))
    atoms = {atom: (_ahead(rows, atom), _evaluated(rows, atom)) for atom in atoms_of(condition)}
    by, true = end.copy(), np.ones(rows.height, dtype=np.bool_)
    if closed:
        true = _outcomes(condition, {atom: outcomes for atom, (_, outcomes) in atoms.items()}).true
    anything = np.ones(rows.height, dtype=np.bool_)
    open_, unknown = anything.copy(), Outcomes(anything, anything, anything, anything)
    for step in range(max(ahead for ahead, _ in atoms.values()) + 1):
        known = {atom: outcomes if ahead <= step else unknown for atom, (ahead, outcomes) in atoms.items()}
        outcomes = _outcomes(condition, known)
        new = open_ & outcomes.decided & (here + step < end)
        by[new], true[new], open_ = here[new] + step, outcomes.true[new], open_ & ~new
    return by, true


def _outcomes(condition: Term, atoms: dict[Term, Outcomes]) -> Outcomes:
    """What a condition can be, of which the parts can be these, as if they did not depend on each other."""
    match condition:
        case Call("and", args):
            return reduce(Outcomes.both, (_outcomes(arg, atoms) for arg in args))
        case Call("or", args):
            return reduce(Outcomes.either, (_outcomes(arg, atoms) for arg in args))
        case Call("not", (arg,)):
            return _outcomes(arg, atoms).negated()
        case _:
            return atoms[condition]


def _ahead(rows: OrderedRows, atom: Term) -> int:
    """How many rows behind its own a part reads."""
    steps = (rows.navigations[name].row.step for name in attributes_of(atom) if name in rows.navigations)
    return max((step for step in steps if step > 0), default=0)


def _evaluated(rows: OrderedRows, atom: Term) -> Outcomes:
    """What a part is, where NULL is read behind the last row of a partition."""
    value, failed = rows.evaluated(atom, rows.height)
    none = np.zeros(rows.height, dtype=np.bool_) if failed is None else failed
    null = value.is_null().to_numpy() & ~none
    true = value.fill_null(value=False).to_numpy() & ~none
    return Outcomes(true, ~true & ~null & ~none, null, none)
