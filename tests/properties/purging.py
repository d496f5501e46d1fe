"""Partner and kill rule applied to rows in plain Python: pairs by pairs, no join of an engine involved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import Row, evaluate
from tidegate.algebra.terms import Term
from tidegate.algebra.time import Extended
from tidegate.analysis.purge import Case, Purge


def needed(
    rules: Purge, buffers: Sequence[Sequence[Row]], p: Mapping[str, Extended], b: Mapping[tuple[str, str], Extended]
) -> list[list[Row]]:
    """The rows of each occurrence that are dead by the rules in every zone left out; static tables stay whole."""
    alive: list[set[int]] = [set() for _ in buffers]
    for case in rules.cases:
        for i, places in _alive(rules, case, buffers, p, b).items():
            alive[i] |= places
    return [
        list(rows) if o.stream.static else [row for place, row in enumerate(rows) if place in alive[o.index]]
        for o, rows in zip(rules.facts.occurrences, buffers, strict=True)
    ]


def _alive(
    rules: Purge,
    case: Case,
    buffers: Sequence[Sequence[Row]],
    p: Mapping[str, Extended],
    b: Mapping[tuple[str, str], Extended],
) -> dict[int, set[int]]:
    schemas = {i: rules.facts.occurrences[i].stream.schema for i in case.views}
    alive = {
        i: {place for place, row in enumerate(buffers[i]) if _true(rules.keep(case, i, p), schemas[i], row)}
        for i in case.views
    }
    while True:
        before = {i: len(places) for i, places in alive.items()}
        for rule in case.partners:
            own, other = schemas[rule.occurrence], schemas[rule.counterpart]
            holds, may_come = rule.holds(_other, (frozenset(own), frozenset(other))), rule.may_come(b)
            partners = [buffers[rule.counterpart][place] for place in alive[rule.counterpart]]
            alive[rule.occurrence] = {
                place
                for place in alive[rule.occurrence]
                if _true(may_come, own, row := buffers[rule.occurrence][place])
                or any(_true_of(holds, own, row, other, partner) for partner in partners)
            }
        if before == {i: len(places) for i, places in alive.items()}:
            break
    for kill in case.kills:
        own, other = schemas[kill.occurrence], rules.facts.occurrences[kill.counterpart].stream.schema
        condition = kill.condition(p, _other, (frozenset(own), frozenset(other)))
        killers = [k for k in buffers[kill.counterpart] if evaluate(kill.right, {kill.streams[1].name: [k]})]
        assert condition is not None
        alive[kill.occurrence] -= {
            place
            for place in alive[kill.occurrence]
            if any(_true_of(condition, own, buffers[kill.occurrence][place], other, k) for k in killers)
        }
    return alive


def _other(name: str) -> str:
    return f"other {name}"


def _true(condition: Term, schema: Schema, row: Row) -> bool:
    return evaluate_term(condition, dict(zip(schema.names, row, strict=True)), schema) is True


def _true_of(condition: Term, own: Schema, row: Row, other: Schema, partner: Row) -> bool:
    both = Schema((*own.attributes, *(a.renamed(_other(a.name)) for a in other.attributes)))
    return _true(condition, both, (*row, *partner))
