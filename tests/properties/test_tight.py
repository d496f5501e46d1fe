"""On queries over instants alone the rules are exact: they agree with the enumeration of a small world, row for row.

This is what a rule that is merely sound, and keeps or waits for too much, does not pass.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.properties.brute import Grid, every, grid, holds, instants, some
from tests.properties.families import seeds
from tests.shards import shards
from tests.strategies.programs import show_node, show_term
from tests.strategies.temporal import TemporalQuery, random_relation, random_temporal_query
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import propagations
from tidegate.analysis.state.keep import keep
from tidegate.analysis.state.relevance import relevance
from tidegate.analysis.validity.validity import refuting
from tidegate.analysis.zones.federation import Federation

RADIUS = {1: 14, 2: 14, 3: 14, 4: 11}
SHARDS = 8


@dataclass(frozen=True, slots=True)
class _World:
    """All the rows that matter together in one way: instants per occurrence, and the result's attributes."""

    occurrences: tuple[int, ...]
    columns: Mapping[str, Grid]
    outputs: Mapping[str, Grid]

    @property
    def size(self) -> int:
        return len(next(iter(self.columns.values())))


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_propagation_keep_and_relevance_are_exact(shard: int) -> None:
    for seed in seeds(800)[shard::SHARDS]:
        query = random_temporal_query(seed)
        try:
            found = federation(query.node)
        except QueryError as error:
            assert error.code == "TG150"  # noqa: PT017  # too many cases is the one refusal that may come
            continue
        worlds = _worlds(query)
        rng = random.Random(seed)
        _check_propagation(query, found, worlds, rng)
        _check_rows(query, found, worlds, rng)
        _check_relations(query, found, worlds)


def test_the_queries_have_solutions() -> None:
    sizes = [sum(world.size for world in _worlds(query)) for query in map(random_temporal_query, range(100))]
    assert sum(size > 0 for size in sizes) >= 60


def _worlds(query: TemporalQuery) -> list[_World]:
    radius = RADIUS[sum(map(len, query.owned))]
    worlds: list[_World] = []
    for way in query.ways:
        columns = grid(query.names(way), -radius, radius)
        mask = holds(way.condition, columns)
        columns = {name: column[mask] for name, column in columns.items()}
        outputs = {a: instants(way.outputs[a], columns) for a in query.outputs}
        worlds.append(_World(way.occurrences, columns, outputs))
    return worlds


def _check_propagation(query: TemporalQuery, found: Federation, worlds: list[_World], rng: random.Random) -> None:
    """f is the largest instant such that no result row at or before it depends on a row that is still to come."""
    radius = RADIUS[sum(map(len, query.owned))]
    functions = propagations(found)
    streams = [stream.name for stream in found.occurrences]
    for _ in range(4):
        b: dict[tuple[str, str], Extended] = {}
        for i, names in enumerate(query.owned):
            b |= {(streams[i], name[:-1]): rng.choice((-2, -1, 0, 1, 2, INF)) for name in names}
        for a in query.outputs:
            open_: list[int] = []
            for world in worlds:
                coming = [
                    every([world.columns[n] > b[streams[i], n[:-1]] for n in query.progressing[i]], world.size)
                    for i in world.occurrences
                ]
                open_ += world.outputs[a][some(coming, world.size)].tolist()
            known = functions[a].evaluate(b)
            told = f"{query.seed}: {show_node(query.node)}: f({a}) = {known} at {b}"
            if known == INF:
                assert not open_, f"{told}, though {min(open_)} is open"
            elif known == -INF:
                assert min(open_, default=INF) <= -radius + 4, f"{told}, though nothing before {min(open_)} is open"
            else:
                assert min(open_, default=INF) == known + 1, f"{told}, though {min(open_)} is the first that is open"


def _check_rows(query: TemporalQuery, found: Federation, worlds: list[_World], rng: random.Random) -> None:
    """A row is kept iff it matters to a result row that is yet to pass, and relevant iff to one that passes now."""
    outputs = query.outputs
    for i, names in enumerate(query.owned):
        kept = keep(found, i, outputs)
        relevant = relevance(kept)
        schema = found.occurrences[i].schema
        for _ in range(10):
            row = {name: rng.randint(-2, 2) for name in names}
            own = {name[:-1]: value for name, value in row.items()}
            old: dict[str, Extended] = {a: rng.choice((-INF, -3, -2, -1, 0, 1, 2, 3)) for a in outputs}
            new = {a: max(old[a], rng.choice((-INF, -2, -1, 0, 1, 2, 3, INF))) for a in outputs}
            stays = passes = False
            for world in (world for world in worlds if i in world.occurrences):
                with_row = [world.columns[name] == value for name, value in row.items()]
                above = every([*with_row, *(world.outputs[a] > old[a] for a in outputs)], world.size)
                stays |= bool(above.any())
                passes |= bool((above & some([world.outputs[a] <= new[a] for a in outputs], world.size)).any())
            told = f"{query.seed}: {show_node(query.node)}: row {own} of occurrence {i} at {old} -> {new}"
            assert kept.row(own, old) == stays, f"{told}: keep"
            assert relevant.row(own, old, new) == passes, f"{told}: relevance"
            if evaluate_term(found.occurrences[i].relations, own, schema) is True:
                assert evaluate_term(kept.condition(old), own, schema) is stays, f"{told}: keep condition"
                by_condition = evaluate_term(relevant.condition(old, new), own, schema)
                assert by_condition is passes, f"{told}: relevance condition"


def _check_relations(query: TemporalQuery, found: Federation, worlds: list[_World]) -> None:
    """A declared relation is refuted iff a result row contradicts it."""
    for number in range(4):
        relation = random_relation(query, number)
        contradicted = any(bool((~holds(relation, world.outputs)).any()) for world in worlds if world.size)
        witness = refuting(found, relation, query.node.schema)
        told = f"{query.seed}: {show_node(query.node)}: {show_term(relation)}"
        assert (witness is not None) == contradicted, f"{told}: refuted by {witness}"
