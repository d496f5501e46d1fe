"""Partitions in which a query in a context is suspended, since when, and by which contexts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.nodes import Node, Scan, Select, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import CONTEXT, TIME
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.row_wise import ordered_operator
from tidegate.algebra.terms import Attr, Call, Lit
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.ordered.transitions import OPEN
from tidegate.analysis.zones.wording import instant
from tidegate.runtime.ordered.row_operator import NONE
from tidegate.runtime.ordered.state import read_state
from tidegate.runtime.ordered.transitions.operator import state_tables
from tidegate.runtime.state.manifest import Manifest
from tidegate.runtime.state.store.interface import Store

#: Partitions that are listed, and open windows that are read: nobody waits for more.
LISTED: Final = 5
MOST_WINDOWS: Final = 200_000


@dataclass(frozen=True, slots=True)
class _Required:
    """A context in which a query stands, of the model that a stream has the changes of."""

    model: str
    context: str


def suspensions(
    facts: ProgramFacts, progress: Mapping[str, Mapping[str, Extended]], manifest: Manifest, store: Store, result: str
) -> Iterator[tuple[str, str]]:
    """Per context in which a result stands, where it holds and where not; nothing of other results, nor before
    anything is known of contexts and after the end, when nothing is kept. `progress` is that of queries.

    `why` shows the first word before the text. It is as the last batch has left it.
    """
    for required in dict.fromkeys(_required(facts, result)):
        query = next(query for query in facts.queries if query.query.stream == required.model)
        node = ordered_operator(query.query.node)
        known = any(-INF < reached < INF for reached in progress[query.query.name].values())
        if isinstance(node, Transitions) and required.context != node.default and known:
            yield from _of(node, query, required, manifest, store)


def _required(facts: ProgramFacts, result: str) -> Iterator[_Required]:
    """The contexts in which a result stands, or parts of it: those of inner joins with the changes of a model."""
    waiting, seen = [result], {result}
    while waiting:
        for query in facts.queries:
            if query.query.stream != waiting[0]:
                continue
            for node in nodes_of(query.query.node):
                if isinstance(node, AsOf) and node.strict and node.how == "inner":
                    yield from _looked_up(node.right)
                if isinstance(node, Scan) and node.stream.name not in seen and _is_inner(facts, node.stream.name):
                    seen.add(node.stream.name)
                    waiting.append(node.stream.name)
        waiting.pop(0)


def _is_inner(facts: ProgramFacts, stream: str) -> bool:
    return any(query.query.inner for query in facts.queries if query.query.stream == stream)


def _looked_up(node: Node) -> Iterator[_Required]:
    """The context whose changes an input of a join has."""
    for below in nodes_of(node):
        match below:
            case Select(Scan(stream), Call("eq", (Attr(name), Lit(str(context))))) if name == CONTEXT:
                yield _Required(stream.name, context)


def _of(
    node: Transitions, query: QueryFacts, required: _Required, manifest: Manifest, store: Store
) -> Iterator[tuple[str, str]]:
    files = manifest.kernel.get(required.model)
    windows = 0 if files is None else sum(kept.rows for kept in files.kept if kept.holds == OPEN)
    context, since = required.context, query.output.schema[TIME].type
    if windows > MOST_WINDOWS:
        yield "suspended", f"where no context {context} holds: {required.model} has {windows:,} windows that hold"
        return
    tables = {} if files is None else read_state(store, required.model, files, state_tables(node))
    rows = _open_windows(node, tables)
    by_partition: dict[tuple[Any, ...], dict[str, int | None]] = {}
    for *of, number, began in rows.iter_rows():
        by_partition.setdefault((*of,), {})[node.contexts[number].name] = began
    holding = {key: its for key, its in by_partition.items() if context in its}
    others = {key: its for key, its in by_partition.items() if context not in its}
    for key in [*holding][:LISTED]:
        yield "in context", f"{context} has held{_since(holding[key][context], since)}{_partition(node, key)}"
    if len(holding) > LISTED:
        yield "in context", f"… and in {count_of(len(holding) - LISTED, 'more partition')}"
    for key in [*others][:LISTED]:
        instead = " and ".join(f"{name} has held{_since(began, since)}" for name, began in others[key].items())
        yield "suspended", f"no context {context}{_partition(node, key)}: {instead}"
    if len(others) > LISTED:
        yield "suspended", f"… and in {count_of(len(others) - LISTED, 'more partition')}"
    if node.keys or not by_partition:
        where = " in every other partition" if by_partition else " in any partition" if node.keys else ""
        yield "suspended", f"no context {context}{where}: {node.default} has held since ever"


def _open_windows(node: Transitions, tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """The windows that hold, in the order in which they began: keys of the partition, context, beginning."""
    if OPEN not in tables:
        return pl.DataFrame()
    rows = tables[OPEN].filter(pl.col(NONE).not_())
    columns = [*(name for name in rows.columns if name.startswith("key ")), "context", "began"]
    return rows.select(columns).unique(maintain_order=True).sort("began", "context", maintain_order=True)


def _since(began: int | None, type_: Any) -> str:
    return " since ever" if began is None else f" since {instant(began, type_)}"


def _partition(node: Transitions, key: tuple[Any, ...]) -> str:
    if not node.keys:
        return ""
    said = (f"{name} = {'NULL' if value is None else shown(value)}" for name, value in zip(node.keys, key, strict=True))
    return f" where {', '.join(said)}"
