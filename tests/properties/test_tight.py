"""On σ and × over instants the rules are exact: they agree with the enumeration of a small world, row for row.

This is what a rule that is merely sound, and keeps or waits for too much, does not pass.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest

from tests.properties.brute import Grid, grid, holds
from tests.properties.families import seeds
from tests.strategies.programs import show_node
from tests.strategies.temporal import TemporalQuery, random_temporal_query
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.federation import Federation, federation
from tidegate.analysis.keep import keep
from tidegate.analysis.propagation import propagations
from tidegate.analysis.relevance import relevance

RADIUS = {1: 14, 2: 14, 3: 14, 4: 11}
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_propagation_keep_and_relevance_are_exact(shard: int) -> None:
    for seed in seeds(1200)[shard::SHARDS]:
        query = random_temporal_query(seed)
        try:
            found = federation(query.node)
        except QueryError as error:
            assert error.code == "TG150"  # noqa: PT017  # too many cases is the one refusal that may come
            continue
        solutions = _solutions(query)
        rng = random.Random(seed)
        _check_propagation(query, found, solutions, rng)
        _check_rows(query, found, solutions, rng)


def test_the_queries_have_solutions() -> None:
    sizes = [len(_solutions(query)[query.names[0]]) for query in map(random_temporal_query, range(100))]
    assert sum(size > 0 for size in sizes) >= 60


def _solutions(query: TemporalQuery) -> dict[str, Grid]:
    radius = RADIUS[len(query.names)]
    columns = grid(query.names, -radius, radius)
    found = holds(query.condition, columns)
    return {name: column[found] for name, column in columns.items()}


def _check_propagation(
    query: TemporalQuery, found: Federation, solutions: Mapping[str, Grid], rng: random.Random
) -> None:
    """f is the largest instant such that no solution at or before it holds a row that is still to come."""
    radius = RADIUS[len(query.names)]
    functions = propagations(found)
    streams = [found.occurrences[i].name for i in range(len(query.owned))]
    for _ in range(4):
        b: dict[tuple[str, str], Extended] = {}
        for i, names in enumerate(query.owned):
            b |= {(streams[i], name[:-1]): rng.choice((-2, -1, 0, 1, 2, INF)) for name in names}
        coming = np.zeros(len(solutions[query.names[0]]), dtype=bool)
        for i, progressing in enumerate(query.progressing):
            coming |= np.logical_and.reduce([solutions[name] > b[streams[i], name[:-1]] for name in progressing])
        for a in query.outputs:
            waiting = solutions[a][coming]
            known = functions[a].evaluate(b)
            told = f"{query.seed}: {show_node(query.node)}: f({a}) = {known} at {b}"
            if known == -INF:
                assert len(waiting), told
                assert waiting.min() <= -radius + 4, f"{told}, though nothing before {waiting.min()} is open"
            elif known == INF:
                assert not len(waiting), f"{told}, though {waiting.min()} is open"
            else:
                assert len(waiting), told
                assert waiting.min() == known + 1, f"{told}, though {waiting.min()} is the first that is open"


def _check_rows(query: TemporalQuery, found: Federation, solutions: Mapping[str, Grid], rng: random.Random) -> None:
    """A row is kept iff a solution with it is yet to pass, and relevant iff one passes now."""
    outputs = query.outputs
    for i, names in enumerate(query.owned):
        kept = keep(found, i, outputs)
        relevant = relevance(kept)
        schema = found.occurrences[i].schema
        for _ in range(10):
            row = {name: rng.randint(-2, 2) for name in names}
            own = {name[:-1]: value for name, value in row.items()}
            with_row = np.logical_and.reduce([solutions[name] == value for name, value in row.items()])
            old: dict[str, Extended] = {a: rng.choice((-INF, -3, -2, -1, 0, 1, 2, 3)) for a in outputs}
            new = {a: max(old[a], rng.choice((-INF, -2, -1, 0, 1, 2, 3, INF))) for a in outputs}
            above = np.logical_and.reduce([with_row, *(solutions[a] > old[a] for a in outputs)])
            now = above & np.logical_or.reduce([solutions[a] <= new[a] for a in outputs])
            told = f"{query.seed}: {show_node(query.node)}: row {own} of occurrence {i} at {old} -> {new}"
            assert kept.row(own, old) == above.any(), f"{told}: keep"
            assert relevant.row(own, old, new) == now.any(), f"{told}: relevance"
            if evaluate_term(found.occurrences[i].relations, own, schema) is True:
                assert evaluate_term(kept.condition(old), own, schema) is bool(above.any()), f"{told}: keep condition"
                assert evaluate_term(relevant.condition(old, new), own, schema) is bool(now.any()), (
                    f"{told}: relevance condition"
                )
