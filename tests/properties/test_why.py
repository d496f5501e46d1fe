"""What `why` says is true, on random programs: as far as it says inputs have to arrive, rows are final, and not
before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from tests.properties.drive import as_tuples, instants_of
from tests.properties.families import seeds
from tests.strategies.programs import ONE_QUERY, Case, random_case
from tidegate.algebra.errors import QueryError
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.ingest.inputs import ProgressTicks
from tidegate.runtime.inspect.why import why
from tidegate.runtime.inspect.why_answer import Part
from tidegate.runtime.plan.progress import ProgressState
from tidegate.runtime.state.manifest import Engine, Manifest

Progress = dict[tuple[str, str], Extended]


def state(query: QueryFacts, b: Progress) -> Manifest:
    """A checkpoint in which the inputs have arrived up to b."""
    p = {a: function.evaluate(b) for a, function in query.propagation.items()}
    flat = ProgressState(b, {query.query.name: p}).to_json()
    return Manifest(1, "", "", "", "batch", 0, Engine("test", "1"), None, progress=flat)


def random_progress(case: Case, rng: random.Random) -> Progress:
    rows = [row for stream in case.streams for row in case.rows[stream.name]]
    known = [v for row in rows for v in row.values() if isinstance(v, int) and not isinstance(v, bool)] or [0]

    def one() -> Extended:
        return rng.choice((-INF, INF)) if rng.random() < 0.15 else rng.choice(known) + rng.choice((-1, 0, 0, 1))

    return {(stream.name, a): one() for stream in case.streams for a in stream.progress}


def check_holds(part: Part, query: QueryFacts, b: Progress, met: Counter[str]) -> None:
    for hold in part.holds:
        function = query.propagation[hold.attribute]
        assert hold.reach == function.evaluate(b)
        ended = {key: INF if key[0] == hold.stream else value for key, value in b.items()}
        assert hold.without == function.evaluate(ended)
        met["held back"] += 1


def check_row(facts: ProgramFacts, query: QueryFacts, b: Progress, row: Mapping[str, int], met: Counter[str]) -> None:
    (part,) = why(facts, state(query, b), query.query.stream, row).parts
    assert "never comes" not in part.says  # it came
    final = any(row[a] <= function.evaluate(b) for a, function in query.propagation.items())
    assert final is ("is final" in part.says)
    met["final" if final else "waiting"] += 1
    if final:
        assert not part.waits
        return
    for attribute, function in query.propagation.items():
        waits = [wait for wait in part.waits if wait.attribute == attribute]
        assert waits
        enough = dict(b)
        for wait in waits:
            key = wait.stream, wait.by
            assert wait.has == b[key]
            enough[key] = max(wait.needed, enough[key])
        assert row[attribute] <= function.evaluate(enough)
        if len(waits) == 1 and waits[0].needed != INF:
            less = {**b, (waits[0].stream, waits[0].by): waits[0].needed - 1}
            assert row[attribute] > function.evaluate(less)
            met["exact"] += 1


def test_why_is_true() -> None:
    met: Counter[str] = Counter()
    for seed in seeds(400):
        case = random_case(seed, ONE_QUERY)
        try:
            facts = analyse(case.program)
        except QueryError:
            continue
        query = facts.queries[0]
        if query.is_static or len(facts.queries) > 1:
            continue
        rng = random.Random(seed)
        rows = evaluate(query.query.node, as_tuples(case))
        for _ in range(3):
            b = random_progress(case, rng)
            (part,) = why(facts, state(query, b), query.query.stream).parts
            check_holds(part, query, b, met)
            for row in rng.sample(rows, min(3, len(rows))):
                instants = instants_of(query.output, row)
                check_row(facts, query, b, {name: ProgressTicks(instant) for name, instant in instants.items()}, met)
    assert min(met[what] for what in ("held back", "final", "waiting", "exact")) > 100, met
