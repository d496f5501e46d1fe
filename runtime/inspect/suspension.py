"""Partitions in which a query in contexts is suspended, since when, and which contexts hold there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import polars as pl

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.ordered.transitions.definition import TIME
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.row_wise import ordered_operator
from tidegate.algebra.terms import Value
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.ordered.transitions import OPEN
from tidegate.analysis.zones.wording import instant
from tidegate.contexts.standing import Standing, context_of, standings
from tidegate.runtime.ordered.state import read_state
from tidegate.runtime.state.manifest import Manifest
from tidegate.runtime.state.store.interface import Store

#: Partitions that are listed, and open windows that are read: nobody waits for more.
LISTED: Final = 5
MOST_WINDOWS: Final = 200_000

#: The contexts that hold in a partition, each with the beginning of its window; -∞ where it has held since ever.
Held: TypeAlias = Mapping[str, Extended]
#: The values of a partition's keys.
Key: TypeAlias = tuple[Value, ...]


def suspensions(
    facts: ProgramFacts, progress: Mapping[str, Mapping[str, Extended]], manifest: Manifest, store: Store, result: str
) -> Iterator[tuple[str, str]]:
    """For all that a result stands in, the partitions of which rows are let through and those in which the query is
    suspended. Nothing of other results, nor before anything is known of contexts and after the end, when nothing is
    kept. `progress` is that of queries.

    `why` shows the first word before the text. It is as the last batch has left it.
    """
    known: dict[str, _Windows] = {}
    for standing in standings(facts, result):
        query = next(query for query in facts.queries if query.query.stream == standing.model)
        node, reached = ordered_operator(query.query.node), progress[query.query.name].get(TIME, -INF)
        if not isinstance(node, Transitions) or not -INF < reached < INF:
            continue
        if standing.model not in known:
            known[standing.model] = _Windows.stored(node, standing.model, manifest, store)
        context = context_of(node, facts)
        account = _Account(standing, node, int(reached), query.output.schema[TIME].type, context)
        yield from account.lines(known[standing.model])


@dataclass(frozen=True, slots=True)
class _Windows:
    """How many windows of a model are stored, and, unless they are too many, those of each partition in which other
    contexts hold than the default since ever. Partitions are in the order of their first windows.
    """

    stored_rows: int
    by_partition: Mapping[Key, Held]

    @classmethod
    def stored(cls, node: Transitions, model: str, manifest: Manifest, store: Store) -> _Windows:
        files = manifest.kernel.get(model)
        if files is None:
            return cls(0, {})
        stored_rows = sum(kept.rows for kept in files.kept if kept.holds == OPEN)
        if stored_rows > MOST_WINDOWS:
            return cls(stored_rows, {})
        # Kernels take half a second to load, and every session loads this module.
        from tidegate.runtime.ordered.row_operator import NONE
        from tidegate.runtime.ordered.transitions.operator import state_tables

        tables = read_state(store, model, files, state_tables(node))
        by_partition: dict[Key, dict[str, Extended]] = {}
        if OPEN in tables:
            rows = tables[OPEN].filter(pl.col(NONE).not_())
            keys = [name for name in rows.columns if name.startswith("key ")]
            # A context that holds by causes has a row for each of them.
            windows = rows.select(*keys, "context", "began").unique().sort("began", "context", *keys)
            for *key, number, began in windows.iter_rows():
                by_partition.setdefault((*key,), {})[node.contexts[number].name] = -INF if began is None else began
        return cls(stored_rows, by_partition)


@dataclass(frozen=True, slots=True)
class _Account:
    """What is said of rows that stand in contexts, or outside of them, of a model whose transitions are known up to
    `reached`.
    """

    standing: Standing
    node: Transitions
    reached: int
    type: DataType
    #: The context of which the windows are those of, where they are windows between rows.
    context: str | None

    def lines(self, windows: _Windows) -> Iterator[tuple[str, str]]:
        inside = "not in context" if self.standing.outside else "in context"
        if windows.stored_rows > MOST_WINDOWS:
            because = self._one() if self.standing.outside else self._none()
            many = count_of(windows.stored_rows, "window")
            holds = "holds" if windows.stored_rows == 1 else "hold"
            yield "suspended", f"where {because}: {self.standing.model} has {many} that {holds}"
            return
        partitions: dict[Key, Held] = {key: {} if None in key else held for key, held in windows.by_partition.items()}
        never_left: Held = {self.node.default: -INF}
        for label, stands in ((inside, True), ("suspended", False)):
            its = [key for key, held in partitions.items() if self._stands(held) is stands]
            for key in its[:LISTED]:
                yield label, self._said(partitions[key], self._where(key))
            if len(its) > LISTED:
                yield label, f"… and in {count_of(len(its) - LISTED, 'more partition')}"
            if self._stands(never_left) is stands and (self.node.keys or not partitions):
                other = "other " if partitions else ""
                yield label, self._said(never_left, f" in every {other}partition" if self.node.keys else "")

    def _stands(self, held: Held) -> bool:
        return held.keys().isdisjoint(self.standing.contexts) is self.standing.outside

    def _said(self, held: Held, where: str) -> str:
        return f"{self._when(self._since(held))}{where}: {self._because(held)}"

    def _since(self, held: Held) -> Extended | None:
        """An instant after which it has been so that one of the contexts holds, or none; None where only windows tell
        that have ended, of which nothing is kept.
        """
        begun = [began for context, began in held.items() if context in self.standing.contexts]
        if begun:
            return min(begun)
        if not held:
            return -INF
        if self.node.default in held:
            return held[self.node.default]
        return min(held.values()) if self.standing.contexts == (self.node.default,) else None

    def _when(self, since: Extended | None) -> str:
        at = self.standing.at
        known = instant(self.reached if since is None else since, self.type)
        if self.standing.own:
            return "since ever" if since == -INF else f"since {known}{' or before' if since is None else ''}"
        return f"for every {at}" if since == -INF else f"for {at} > {known}"

    def _because(self, held: Held) -> str:
        contexts, default = self.standing.contexts, self.node.default
        if not held:
            return "a row without a key is in no context"
        if holding := [context for context in held if context in contexts]:
            return _hold(holding if self.context is None else [self.context])
        if contexts == (default,):
            return _hold([*held])
        if default not in held:
            others = (f"{context} has held since {instant(began, self.type)}" for context, began in held.items())
            return f"{self._none()}, {' and '.join(others)}"
        is_every = {*contexts} == {context.name for context in self.node.contexts} - {default}
        return self._none() if is_every else f"{self._none()}, {default} does"

    def _shown(self) -> tuple[str, ...]:
        return self.standing.contexts if self.context is None else (self.context,)

    def _one(self) -> str:
        contexts = self._shown()
        return f"{contexts[0]} holds" if len(contexts) == 1 else f"one of {', '.join(contexts)} holds"

    def _none(self) -> str:
        contexts = self._shown()
        return f"{contexts[0]} does not hold" if len(contexts) == 1 else f"none of {', '.join(contexts)} holds"

    def _where(self, key: Key) -> str:
        """A partition, by the names that the rows of the query have for the keys."""
        if not self.node.keys:
            return ""
        types = (self.node.input.schema[name].type for name in self.node.keys)
        said = (
            f"{name} = {_text(value, type_)}" for name, value, type_ in zip(self.standing.keys, key, types, strict=True)
        )
        return f" where {', '.join(said)}"


def _hold(contexts: Sequence[str]) -> str:
    return f"{' and '.join(contexts)} hold{'s' if len(contexts) == 1 else ''}"


def _text(value: Value, type_: DataType) -> str:
    return shown(value) if isinstance(value, str) else value_text(value, type_)
