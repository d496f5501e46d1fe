"""The contexts that hold in one partition, instant after instant."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from tidegate.algebra.evaluation import key_of
from tidegate.algebra.ordered.transitions.definition import END, START
from tidegate.algebra.ordered.transitions.node import Transitions

#: A kept row: context, began, cause, how many of it, and the values of the initiating row.
Kept = tuple[int, int | None, Any, int, tuple[Any, ...]]


@dataclass(slots=True)
class _Cause:
    value: Any
    count: int


@dataclass(slots=True)
class _Open:
    """A window that holds. Of a context that transitions hold there are no causes."""

    began: int | None
    carried: tuple[Any, ...]
    causes: dict[Hashable, _Cause] = field(default_factory=dict)


class Change(NamedTuple):
    context: int
    change: str
    at: int
    began: int | None
    carried: tuple[Any, ...]


class Rules:
    """The transitions of a node by their numbers, with contexts as numbers.

    `stands` says of each in which contexts it stands, `in_vain` whether it changes nothing where its target goes on.
    """

    def __init__(self, node: Transitions) -> None:
        places = {context.name: place for place, context in enumerate(node.contexts)}
        self.names = [context.name for context in node.contexts]
        self.default: Final = places[node.default]
        self.dated: Final = node.dated
        self.targets = [places[transition.context] for transition in node.transitions]
        self.actions = [transition.action for transition in node.transitions]
        self.within = [tuple(places[name] for name in transition.within) for transition in node.transitions]
        self.one_cause = [transition.one_cause for transition in node.transitions]
        self.held_by = [context.held_by for context in node.contexts]
        self.nothing = (None,) * len(node.carried)
        self.stands = np.zeros((len(self.within), len(self.names)), dtype=np.bool_)
        for number, within in enumerate(self.within):
            self.stands[number, within] = True
        held = [self.held_by[target] == "transition" for target in self.targets]
        self.in_vain = np.array([action == "initiate" for action in self.actions]) & held


class PartitionContexts:
    """The open windows of one partition; none stands for the default context, which has held since ever."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.open: dict[int, _Open] = {}

    def add(self, kept: Kept) -> None:
        context, began, value, count, carried = kept
        window = self.open.setdefault(context, _Open(began, carried))
        if self.rules.held_by[context] != "transition":
            window.causes[key_of(value)] = _Cause(value, count)

    def kept(self) -> Iterator[Kept]:
        for context, window in sorted(self.open.items()):
            if not window.causes:
                yield context, window.began, None, 1, window.carried
            for cause in window.causes.values():
                yield context, window.began, cause.value, cause.count, window.carried

    def transact(self, at: int, rows: Sequence[tuple[int, int, Any, tuple[Any, ...]]]) -> list[Change]:
        """Applies the candidates of one instant: number, since, cause, carried; in the order in which they initiate."""
        rules = self.rules
        ended: set[int] = set()
        cleared: list[tuple[int, Hashable]] = []
        begun: list[tuple[int, Any, tuple[Any, ...]]] = []
        for number, since, cause, carried in rows:
            inside = [context for context in rules.within[number] if self._has(context, since)]
            if not inside:
                continue
            target, action = rules.targets[number], rules.actions[number]
            if action == "switch":
                ended.update(inside)
            if action != "terminate":
                begun.append((target, cause, carried))
            elif rules.one_cause[number]:
                cleared.append((target, key_of(cause)))
            else:
                ended.add(target)
        if not (ended or cleared or begun):
            return []
        return self._apply(at, ended - {rules.default}, cleared, begun)

    def _has(self, context: int, since: int) -> bool:
        """Whether a context holds, and has held since before an instant."""
        window = self.open.get(context)
        if window is None:
            return context == self.rules.default and not self.open
        return window.began is None or window.began < since

    def _apply(
        self,
        at: int,
        ended: set[int],
        cleared: list[tuple[int, Hashable]],
        begun: list[tuple[int, Any, tuple[Any, ...]]],
    ) -> list[Change]:
        rules = self.rules
        default, nothing = rules.default, rules.nothing
        was = self.open.pop(default, None) or (None if self.open else _Open(None, nothing))
        for context, cause in cleared:
            if context not in ended and self._cleared(context, cause):
                ended.add(context)
        changes = [self._change(context, END, at, self.open.pop(context)) for context in sorted(ended)]
        for context, cause, carried in begun:
            if context == default:
                continue
            if context not in self.open:
                self.open[context] = _Open(at, carried)
                changes.append(self._change(context, START, at, self.open[context]))
            self._hold(context, cause)
        if was is not None and self.open:
            changes.append(self._change(default, END, at, was))
        elif was is not None:
            self.open = {default: was} if was.began is not None else {}
        elif not self.open:
            left = _Open(at if rules.dated else None, nothing)
            changes.append(self._change(default, START, at, left))
            if rules.dated:
                self.open[default] = left
        return changes

    def _cleared(self, context: int, cause: Hashable) -> bool:
        """Takes a cause away, and says whether it was the last one."""
        causes = self.open[context].causes
        if cause not in causes:
            return False
        causes[cause].count -= 1
        if not causes[cause].count:
            del causes[cause]
        return not causes

    def _hold(self, context: int, cause: Any) -> None:
        """Adds a cause where the context holds by causes."""
        held_by, causes = self.rules.held_by[context], self.open[context].causes
        if held_by == "transition":
            return
        known = causes.setdefault(key_of(cause), _Cause(cause, 0))
        known.count = known.count + 1 if held_by == "bag" else 1

    @staticmethod
    def _change(context: int, change: str, at: int, window: _Open) -> Change:
        return Change(context, change, at, window.began, window.carried)
