"""Models in which rows say which transition they ask for, so that tests read as transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import tidegate as tg
from tidegate.algebra.nodes import Row
from tidegate.algebra.semantics import evaluate

SCHEMA = "t bigint, does string, cause string, since bigint"
ASKED = tg.stream("Asked", SCHEMA, progress="t", temporal="since", relations=lambda r: r.since <= r.t)
EVENTS = tg.stream("Events", "t bigint", progress="t")

#: A transition by the text that a row asks for it with: what it does, the context, and in which contexts it stands.
Queries = Mapping[str, tuple[str, str, tuple[str, ...] | None]]
CONTEXTS = ("a", "b")
EVERYWHERE: Queries = {
    "+a": ("initiate", "a", None),
    "+b": ("initiate", "b", None),
    "-a": ("terminate", "a", None),
    "-b": ("terminate", "b", None),
    "a": ("switch", "a", None),
    "b": ("switch", "b", None),
    "d": ("switch", "d", None),
    "a in a": ("switch", "a", ("a",)),
    "a in b": ("switch", "a", ("b",)),
    "b in a": ("switch", "b", ("a",)),
    "d in a": ("switch", "d", ("a",)),
    "b in d": ("switch", "b", ("d",)),
    "+b in a": ("initiate", "b", ("a",)),
    "+a in d": ("initiate", "a", ("d",)),
}


def model_of(queries: Queries, causes: Mapping[str, Literal["bag", "set"]] | None = None) -> tg.ContextModel:
    """A model with the default context d, whose transitions are asked for by the rows that say so."""
    model = tg.context_model("Model", by=(), default="d", contexts=CONTEXTS, causes=causes)
    for does, (action, context, within) in queries.items():
        rows = ASKED.where(ASKED.does == does)
        cause = rows.cause if context in (causes or {}) else None
        if action == "terminate":
            model = model.terminate(context, when=rows, at="t", since="since", cause=cause)
        else:
            add = model.initiate if action == "initiate" else model.switch
            model = add(context, when=rows, at="t", since="since", within=within, cause=cause)
    return model


def asked(*transactions: tuple[int, str] | tuple[int, str, str | None] | tuple[int, str, str | None, int]) -> list[Row]:
    """Rows that ask for transitions: instant, text, cause, and where the match began."""
    padded = [(*row, *(None, row[0])[len(row) - 2 :]) for row in transactions]
    return [(at, does, cause, since) for at, does, cause, since in padded]


def changes(rows: Iterable[Row], model: tg.ContextModel | None = None) -> list[str]:
    """The changes by these transactions, in order of time: ends before starts, by name."""
    changes = (model or model_of(EVERYWHERE)).changes
    assert changes._fed_by is not None
    found = evaluate(changes._fed_by.node, {"Asked": [*rows]})
    return [
        f"{at} {change} {context}" + (f" since {began}" if change == "end" else "")
        for context, change, at, began in sorted(found, key=lambda row: (row[2], row[1], row[0]))
    ]
