"""Closing what is open when all streams have ended: a statement about the end of the input, which no event makes.

As if every partition had one more event at an instant after all others, which completes what is still open: a situation
ends there, for no condition is true. That event has to be later than all others, and later than what any progress has
declared: else what would be closed depended on how far the queries had come by then, and so on how the input was cut
into batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.batch.executor import IngestResult, Work
from tidegate.runtime.ingest.inputs import given_instant
from tidegate.runtime.plan.operator_state import instants_of
from tidegate.runtime.plan.progress import ProgressState, input_streams, reach
from tidegate.runtime.plan.steps import OrderedStep, Plan, QueryPlan
from tidegate.runtime.state.codec import Json

#: Where it stands in a manifest's `extra`.
CLOSING: Final = "closing"

Declared = Mapping[tuple[str, str], int]


def check_all_end(stream: str | None) -> None:
    """`QueryError` TG417 where only one stream is to end."""
    if stream is not None:
        raise QueryError(
            "TG417", f"close_at is about the end of all streams, not of {stream}", hint="finish(close_at=...)"
        )


def closing_instant(plan: Plan, value: Any) -> int:
    """The instant in ticks, as users write it; `QueryError` TG417 where there is nothing that it could close."""
    types = dict.fromkeys(instants_of(ordered) for _, ordered in _left_open(plan))
    if not types:
        raise _nothing_to_close(plan)
    if len(types) > 1:
        raise QueryError(
            "TG417",
            f"no instant closes what is open both in {' and '.join(sorted(map(str, types)))}",
            hint="run the queries of each timeline as a program of their own",
        )
    (type_,) = types
    ticks = given_instant(value, type_, "close_at")
    if not isinstance(ticks, int):
        raise QueryError(
            "TG417", f"what is open can not end at {shown(value)}", hint="give an instant after all events"
        )
    return ticks


@dataclass(frozen=True, slots=True)
class Closing:
    """What a run knows of closing: where open rows end (`at`, None: nobody has said), and per input stream and
    attribute the greatest instant that an event had or that progress declared. The end of a stream declares no instant.
    """

    at: int | None = None
    declared: Declared = field(default_factory=dict)

    @classmethod
    def from_json(cls, recorded: Json) -> Closing:
        """What a manifest says; nothing where it is silent."""
        match recorded:
            case [int() | None as at, list() as declared]:
                known: dict[tuple[str, str], int] = {}
                for instant in declared:
                    match instant:
                        case [str(stream), str(attribute), int(value)]:
                            known[stream, attribute] = value
                return cls(at, known)
        return cls()

    def to_json(self) -> Json:
        return [self.at, [[stream, a, value] for (stream, a), value in sorted(self.declared.items())]]

    def after(self, work: Work, ingested: Mapping[str, IngestResult], progress: ProgressState) -> Closing:
        """After a batch, whose inputs have come to `progress`."""
        instants = [*work.declared.items(), *progress.inputs.items()]
        for name, result in ingested.items():
            instants += [
                ((name, a), value) for values in (result.greatest, result.punctuation) for a, value in values.items()
            ]
        declared = dict(self.declared)
        for key, value in instants:
            if isinstance(value, int):
                declared[key] = max(value, declared.get(key, value))
        return replace(self, at=self.at if work.close_at is None else work.close_at, declared=declared)

    def end_of(self, plan: Plan, query: QueryPlan, ordered: OrderedStep) -> int | None:
        """Where an operator's rows end once its input has: where it was said; else, if they go on for as long as the
        input progresses, where that has come to by what was declared, however it was cut into batches.
        """
        if self.at is not None or not ordered.node.goes_on:
            return self.at
        passed = _passed(plan, self.declared, query, ordered)
        return None if passed is None else passed.at

    def check(self, plan: Plan, progress: ProgressState) -> None:
        """`QueryError` TG417 where the inputs have ended and all is to end by an instant that has passed."""
        for query, ordered in _left_open(plan) if self.at is not None else []:
            if _reached(plan, progress.inputs, query, ordered) == INF:
                passed = _passed(plan, self.declared, query, ordered)
                if passed is not None and self.at is not None and self.at <= passed.at:
                    raise _too_early(self.at, passed, query, ordered)

    def check_open(self, plan: Plan, progress: ProgressState, asked: int) -> None:
        """`QueryError` TG417 where the end has been stated already, in another way."""
        if self.at == asked:
            return
        for query, ordered in _left_open(plan):
            if progress.queries[query.name][ordered.time] == INF:
                how = "what was open then is not reported" if self.at is None else "all was closed at another instant"
                raise QueryError(
                    "TG417",
                    f"the streams have ended before, and {how}",
                    hint="state close_at together with the end, once",
                )


def _nothing_to_close(plan: Plan) -> QueryError:
    nodes = [query.ordered.node for query in plan.queries if query.ordered is not None]
    stays = ", ".join(dict.fromkeys(node.stays_open for node in nodes if node.stays_open))
    if not stays:
        return QueryError(
            "TG417",
            "nothing can be open: the program has no operator that leaves rows open at the end",
            hint="leave out close_at",
        )
    return QueryError(
        "TG417",
        f"no instant closes what may be open at the end: {stays}",
        because=(
            "a row that closes it ends such a window, and at_most= where it is given",
            "windows that have ended are final, and are reported; of those that are open in_context has the rows",
        ),
        hint="leave out close_at; to end them all, add rows that close them before the streams end",
    )


def _left_open(plan: Plan) -> list[tuple[QueryPlan, OrderedStep]]:
    """The queries that may have something to close, with their operators."""
    return [
        (query, query.ordered) for query in plan.queries if query.ordered is not None and query.ordered.node.leaves_open
    ]


def _reached(
    plan: Plan, inputs: Mapping[tuple[str, str], Extended], query: QueryPlan, ordered: OrderedStep
) -> Extended:
    """How far an operator reads its events once every query has come as far as these inputs let it."""
    ahead = ProgressState.start(plan)
    ahead.inputs |= inputs
    for level in plan.levels():
        ahead.queries |= reach(plan, level, ahead)
    return ahead.queries[query.name][ordered.time]


@dataclass(frozen=True, slots=True)
class _Finality:
    """How far the events of an operator are final before the end, and the inputs that make them so: attributes of
    streams, with the greatest instant that an event had or that was declared there."""

    at: int
    because: tuple[tuple[StreamDef, str, int], ...]
    others: bool
    """Whether it takes the end of other streams that have a part in it."""


def _passed(plan: Plan, declared: Declared, query: QueryPlan, ordered: OrderedStep) -> _Finality | None:
    """The greatest instant of the operator's timeline that what was declared amounts to; None where nothing was.

    Stream by stream, as if the others had ended: whatever was read in whichever batches, no operator can have come
    further before its end. And with all of them, for results that are final by progress of one stream or another.
    """
    streams = input_streams(plan)
    finalities = []
    for chosen in (*((stream,) for stream in sorted(streams, key=lambda s: s.name)), streams):
        names = {stream.name for stream in chosen}
        inputs: dict[tuple[str, str], Extended] = {
            (name, a): declared.get((name, a), -INF) if name in names else INF
            for name, a in ProgressState.start(plan).inputs
        }
        at = _reached(plan, inputs, query, ordered)
        if isinstance(at, int):
            telling = [key for key in inputs if _matters(plan, inputs, query, ordered, key)]
            because = tuple(
                (stream, a, value)
                for stream in chosen
                for a in stream.progress
                if (stream.name, a) in telling and isinstance(value := inputs[stream.name, a], int)
            )
            finalities.append(_Finality(at, because, any(name not in names for name, _ in telling)))
    return max(finalities, key=lambda finality: finality.at, default=None)


def _matters(
    plan: Plan,
    inputs: Mapping[tuple[str, str], Extended],
    query: QueryPlan,
    ordered: OrderedStep,
    key: tuple[str, str],
) -> bool:
    """Whether the operator would have come elsewhere had nothing been declared of this attribute."""
    return _reached(plan, {**inputs, key: -INF}, query, ordered) != _reached(plan, inputs, query, ordered)


def _too_early(at: int, passed: _Finality, query: QueryPlan, ordered: OrderedStep) -> QueryError:
    type_ = instants_of(ordered)
    end, last, least = (value_text(instant, type_) for instant in (at, passed.at, passed.at + 1))
    come = [f"{s.name}.{a} has come to {value_text(value, s.schema[a].type)}" for s, a, value in passed.because]
    ended = ", and the other streams end" if passed.others else ""
    return QueryError(
        "TG417",
        f"{query.stream}: what is open can not end at {end}: {query.stream} is final up to {ordered.time} = {last}",
        because=(f"{', '.join(come)} (the last event, or declared progress){ended}",),
        hint=f"close it at {least} or later",
    )
