"""The contexts that hold in one partition, and what a transaction makes of them: slow and plain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key

from tidegate.algebra.evaluation import key_of
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.transitions.definition import END, START, ContextType, Transition
from tidegate.algebra.terms import Value
from tidegate.algebra.typed.kernels import compare


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of the deriving query with this number. Its match began at `since`; `carried` are values that the window
    keeps which it initiates.
    """

    number: int
    at: int
    since: int
    cause: Value = None
    carried: Row = ()


@dataclass(frozen=True, slots=True)
class Window:
    """A context window (began, ...] that holds; None: it has held since ever. `causes` are how many there are of each,
    by their keys.
    """

    began: int | None
    carried: Row
    causes: Mapping[object, int] = field(default_factory=dict)

    def has(self, candidate: Candidate) -> bool:
        """Whether the whole match of a candidate lies in it, which holds still."""
        return self.began is None or self.began < candidate.since


@dataclass(frozen=True, slots=True)
class Change:
    """A window of a context that ends or starts at an instant."""

    context: str
    change: str
    at: int
    window: Window


class Vector:
    """The contexts that hold in one partition. The default context holds exactly where no other does; of one that is
    not `dated` it is always said that it has held since ever.
    """

    def __init__(
        self, contexts: Sequence[ContextType], default: str, transitions: Sequence[Transition], *, dated: bool = True
    ) -> None:
        self.types = {context.name: context for context in contexts}
        self.default, self.transitions, self.dated = default, transitions, dated
        nothing = next((context for context in contexts if context.name == default), ContextType(default))
        self.active: dict[str, Window] = {nothing.name: Window(None, ())}

    def transact(self, at: int, candidates: Iterable[Candidate]) -> list[Change]:
        """Act' = (Act - X) + {c in I : c not in Act, or c in X}, all of it judged by what held before `at`."""
        before = self.active
        initiated: dict[str, list[Candidate]] = {}
        cleared: dict[str, Counter[object]] = {}
        ended: set[str] = set()
        for candidate in sorted(candidates, key=_RANK):
            transition = self.transitions[candidate.number]
            inside = {c for c in transition.within if c in before and before[c].has(candidate)} - {self.default}
            by_default = self.default in transition.within and self.default in before
            if not inside and not (by_default and before[self.default].has(candidate)):
                continue
            if transition.action == "switch":
                ended |= inside
            if transition.action == "terminate":
                if transition.one_cause:
                    cleared.setdefault(transition.context, Counter())[key_of(candidate.cause)] += 1
                else:
                    ended.add(transition.context)
            elif transition.context != self.default:
                initiated.setdefault(transition.context, []).append(candidate)
        after: dict[str, Window] = {}
        for context, window in before.items():
            if context in ended or context == self.default:
                continue
            causes = Counter(window.causes) - cleared.get(context, Counter())
            if causes or context not in cleared:
                after[context] = Window(window.began, window.carried, causes)
        for context, its in initiated.items():
            window = after.get(context, Window(at, (*its[0].carried,)))
            after[context] = Window(window.began, window.carried, self._with(context, window.causes, its))
        if not after:
            after[self.default] = before.get(self.default, Window(at if self.dated else None, ()))
        self.active = after
        left = [Change(c, END, at, w) for c, w in before.items() if c not in after or after[c].began != w.began]
        new = [Change(c, START, at, w) for c, w in after.items() if c not in before or before[c].began != w.began]
        return left + new

    def _with(self, context: str, causes: Mapping[object, int], its: Sequence[Candidate]) -> Mapping[object, int]:
        """The causes of a context with those of initiations."""
        held_by = self.types[context].held_by
        if held_by == "transition":
            return {}
        added = Counter(causes) + Counter(key_of(candidate.cause) for candidate in its)
        return added if held_by == "bag" else dict.fromkeys(added, 1)


def _order(left: Candidate, right: Candidate) -> int:
    """By query, then by what is carried, NULL first: which of several initiations gives a window its attributes."""
    if left.number != right.number:
        return -1 if left.number < right.number else 1
    for first, second in zip(left.carried, right.carried, strict=True):
        if first is None or second is None:
            order = (first is not None) - (second is not None)
        else:
            order = compare(first, second)
        if order:
            return order
    return 0


_RANK = cmp_to_key(_order)
