"""No history refutes what is found in a model: random models, over many short histories, by the semantics."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

import tidegate as tg
from tests.contexts.traffic import STOPPED
from tests.shards import shards
from tests.strategies.context_models import random_checked_model
from tidegate.algebra.errors import Problem
from tidegate.algebra.nodes import Row, nodes_of
from tidegate.algebra.ordered.events import partitions
from tidegate.algebra.ordered.transitions.definition import END, START
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.transitions.vector import Candidate, Change, Vector
from tidegate.algebra.semantics import evaluate

NEVER_ENDS = "never ends once it holds"
NO_ROWS = "never fires: its query has no rows"


@dataclass(frozen=True)
class Transaction:
    """What happens at an instant, and the queries of which a row counts."""

    at: int
    counted: frozenset[int]
    changes: Sequence[Change]


History = list[Transaction]


def transitions_of(model: tg.ContextModel) -> Transitions:
    program = tg.program(Q=model.changes.where(model.changes.time > -1)).definition
    nodes = (node for query in program.queries if query.stream == "M" for node in nodes_of(query.node))
    return next(node for node in nodes if isinstance(node, Transitions))


def counts(vector: Vector, candidate: Candidate) -> bool:
    within = vector.transitions[candidate.number].within
    return any(context in vector.active and vector.active[context].has(candidate) for context in within)


def histories(node: Transitions, rows: Sequence[Row], without: int | None = None) -> list[History]:
    """What happens in each partition, with the rows of one query left out."""
    found = []
    for _, members in partitions(node.readings[0], rows):
        vector = Vector(node.contexts, node.default, node.transitions)
        candidates = sorted(map(node.candidate, members), key=lambda candidate: candidate.at)
        candidates = [candidate for candidate in candidates if candidate.number != without]
        history: History = []
        for at, together in itertools.groupby(candidates, key=lambda candidate: candidate.at):
            asked = list(together)
            counted = frozenset(candidate.number for candidate in asked if counts(vector, candidate))
            history.append(Transaction(at, counted, vector.transact(at, asked)))
        found.append(history)
    return found


def changed(history: History) -> list[tuple[object, ...]]:
    changes = (change for transaction in history for change in transaction.changes)
    return [(one.context, one.change, one.at, one.window.began, one.window.carried) for one in changes]


def has(history: Iterable[Transaction], context: str, change: str) -> bool:
    return any((one.context, one.change) == (context, change) for step in history for one in step.changes)


def refutes(problem: Problem, node: Transitions, rows: Sequence[Row]) -> bool:
    """Whether some history over these candidates shows that a finding is false. Query i is written on line i."""
    context, _, said = problem.message.partition(" ")
    number = -1 if problem.site is None else problem.site.line
    lived = histories(node, rows)
    match said:
        case "never holds":
            return any(has(history, context, START) for history in lived)
        case _ if said == NEVER_ENDS:
            return any(has(history, context, END) for history in lived)
        case _ if re.fullmatch("never ends once .* has counted", said):
            after = (itertools.dropwhile(lambda step: number not in step.counted, history) for history in lived)
            return any(has(itertools.islice(history, 1, None), context, END) for history in after)
    assert problem.message.startswith(str(node.transitions[number])), problem
    match said:
        case _ if said.endswith(NO_ROWS):
            return any(node.candidate(row).number == number for row in rows)
        case _ if said.endswith(" never fires"):
            return any(number in step.counted for history in lived for step in history)
        case _ if said.endswith(" does nothing"):
            return list(map(changed, lived)) != list(map(changed, histories(node, rows, without=number)))
    raise AssertionError(f"what would refute it? {problem}")


@pytest.mark.parametrize("seed", shards(150, 50))
def test_no_history_refutes_a_finding(seed: int) -> None:
    model, rows = random_checked_model(seed)
    problems = model.check()
    if not problems or any(problem.code != "TG188" for problem in problems):
        return
    try:
        node = transitions_of(model)
    except tg.QueryError:  # TG204: no query has any row
        return
    candidates = evaluate(node.input, rows)
    for problem in problems:
        assert not refutes(problem, node, candidates), f"{problem}\n{model}"


def test_an_initiation_at_the_end_of_its_context_begins_a_new_window() -> None:
    """What `initiate closed in closed` does, though it stands in no other context."""
    model = tg.context_model("M", by="segment", default="clear", contexts="closed")
    model = model.initiate("closed", when=STOPPED.where(STOPPED.place == 0), within="clear")
    model = model.initiate("closed", when=STOPPED.where(STOPPED.place == 1), within="closed")
    model = model.terminate("closed", when=STOPPED.where(STOPPED.place == 2))
    node = transitions_of(model)
    stopped = [(7, 10, 0, False), (7, 20, 1, False), (7, 20, 2, True)]
    candidates = evaluate(node.input, {"Stopped": stopped})
    (with_it,), (without_it,) = histories(node, candidates), histories(node, candidates, without=1)
    assert [one[:3] for one in changed(with_it)][2:] == [("closed", "end", 20), ("closed", "start", 20)]
    assert [one[:3] for one in changed(without_it)][2:] == [("closed", "end", 20), ("clear", "start", 20)]
    assert model.check() == []


def test_a_switch_ends_a_context_whatever_its_causes() -> None:
    """Also where it has a cause, which is one of the context that it begins."""
    certain = tg.stream("Certain", "segment bigint, time bigint, place bigint not null", progress="time")
    contexts = ("closed", "flooded")
    model = tg.context_model(
        "M", by="segment", default="clear", contexts=contexts, causes=dict.fromkeys(contexts, "bag")
    )
    model = model.initiate("closed", when=STOPPED, within="clear")
    model = model.switch("flooded", when=certain, within="closed", cause=certain.place)
    model = model.terminate("flooded", when=certain)
    node = transitions_of(model)
    candidates = evaluate(node.input, {"Stopped": [(7, 10, 0, False)], "Certain": [(7, 20, 1)]})
    (history,) = histories(node, candidates)
    assert ("closed", "end", 20) in [one[:3] for one in changed(history)]
    assert model.check() == []
