"""Progress values: how far each stream has arrived, and how far each result is final."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.algebra.diagnostics.shown import kind_of, nearest, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.recursion import component_progress
from tidegate.runtime.plan.steps import Plan, QueryPlan
from tidegate.runtime.state.errors import MANIFEST, StateError


@dataclass(slots=True)
class ProgressState:
    """The progress values: b per input stream and attribute, p per query and promised attribute. Both only grow.

    b is inclusive: every row with a value at or below it has arrived. A result stream's b is the least p of the queries
    that feed it (TSA Def. 26).
    """

    inputs: dict[tuple[str, str], Extended] = field(default_factory=dict)
    queries: dict[str, dict[str, Extended]] = field(default_factory=dict)

    @classmethod
    def start(cls, plan: Plan) -> ProgressState:
        """The progress before anything has arrived. Static tables have none."""
        inputs = {(s.name, a): -INF for s in input_streams(plan) for a in s.progress}
        return cls(inputs, {q.name: dict.fromkeys(q.facts.propagation, -INF) for q in plan.queries})

    def copy(self) -> ProgressState:
        return ProgressState(dict(self.inputs), {query: dict(p) for query, p in self.queries.items()})

    def of_input(self, stream: StreamDef) -> dict[str, Extended]:
        return {a: self.inputs[stream.name, a] for a in stream.progress}

    def raise_input(self, stream: str, attribute: str, value: Extended) -> None:
        known = self.inputs[stream, attribute]
        self.inputs[stream, attribute] = max(known, value)

    def bounds(self, plan: Plan) -> dict[tuple[str, str], Extended]:
        """The b of every stream that a query reads."""
        b = dict(self.inputs)
        for query in plan.queries:
            for a in query.facts.output.progress:
                key = (query.stream, a)
                b[key] = min(b.get(key, INF), self.queries[query.name][a])
        return b

    def to_json(self) -> dict[str, Extended]:
        flat: dict[str, Extended] = {json.dumps(["input", *key]): b for key, b in self.inputs.items()}
        for name, values in self.queries.items():
            flat |= {json.dumps(["query", name, a]): p for a, p in values.items()}
        return flat

    def load(self, flat: Mapping[str, Extended]) -> None:
        """Loads the progress that a manifest recorded for the same program; `StateError` TG504 for any other."""
        for key, value in flat.items():
            match parsed_key(key):
                case ["input", str(name), str(attribute)] if (name, attribute) in self.inputs:
                    self.inputs[name, attribute] = value
                case ["query", str(name), str(attribute)] if attribute in self.queries.get(name, {}):
                    self.queries[name][attribute] = value
                case _:
                    raise not_of_this_program(f"progress of {key!r:.200}")


def reach(plan: Plan, queries: Sequence[QueryPlan], progress: ProgressState) -> dict[str, dict[str, Extended]]:
    """How far queries of one level may progress now: `max(p, f)`, of a recursive component by its fixpoint (R11,
    R20).
    """
    b = progress.bounds(plan)
    recursion = plan.recursion(queries)
    if recursion is None:
        return {query.name: query.propagate(b, progress.queries[query.name]) for query in queries}
    fixpoint = component_progress(recursion, b)
    old = {query.name: progress.queries[query.name] for query in queries}
    return {name: {a: max(p[a], fixpoint[name][a]) for a in p} for name, p in old.items()}


def parsed_key(key: str) -> object:
    """The parts of a key of a manifest's progress; None where it is no such key."""
    try:
        return json.loads(key)
    except (ValueError, RecursionError):
        return None


def not_of_this_program(what: str) -> StateError:
    """TG504: the manifest is intact but names something that the program does not have."""
    return StateError(
        MANIFEST, f"the manifest has {what}, which the program has not", hint="restore the checkpoint from a backup"
    )


def input_streams(plan: Plan) -> tuple[StreamDef, ...]:
    """The streams that come from outside, without static tables."""
    return plan.once("input streams", lambda: tuple(s for s in plan.facts.program.inputs if not s.static))


def static_tables(plan: Plan) -> tuple[StreamDef, ...]:
    """The tables that are complete from the start."""
    return tuple(stream for stream in plan.facts.program.inputs if stream.static)


def check_known(name: object, known: Iterable[str], what: str) -> None:
    """`QueryError` TG402 for a name that the program does not have, with those it has."""
    names = sorted(known)
    if name not in names:
        near = nearest(name, names) if isinstance(name, str) else []
        hint = f"did you mean {near[0]}? " if near else ""
        hint += f"it has {', '.join(names) or 'none'}"
        asked = shown(name) if isinstance(name, str) else f"{kind_of(name)}: names are text"
        raise QueryError("TG402", f"the program has no {what} {asked}", hint=hint)
