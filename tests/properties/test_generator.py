"""The generator yields what the other tests count on: mostly valid programs with results, and every kind of
operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.properties.drive import as_tuples
from tests.strategies.programs import random_case, terms_of
from tests.strategies.streams import random_script, show_script
from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Group, Join, Node, children, occurrences
from tidegate.algebra.semantics import evaluate_program
from tidegate.algebra.terms import TRUE, Call, subterms
from tidegate.algebra.time import INF
from tidegate.analysis.pipeline import analyse

CASES = 250


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from nodes(child)


def features(seed: int) -> set[str]:
    """What the program of a seed holds, if it is valid."""
    case = random_case(seed)
    try:
        facts = analyse(case.program)
    except QueryError:
        return set()
    found = {"valid"}
    for query in case.program.queries:
        for node in nodes(query.node):
            found.add(node.kind if isinstance(node, Join) else type(node).__name__)
            if isinstance(node, Group):
                found |= {aggregate.function.value for aggregate in node.aggregates}
        for term in terms_of(query.node):
            found |= {sub.op for sub in subterms(term) if isinstance(sub, Call)}
        names = [stream.name for stream in occurrences(query.node)]
        found |= {"self-join"} if len(set(names)) < len(names) else set()
        found |= {f"{len(names)} occurrences"}
    streams = case.streams
    found |= {"static"} if case.statics else set()
    found |= {"two progressing"} if any(len(s.progress) > 1 for s in streams) else set()
    found |= {"not progressing"} if any(len(s.progress) < len(s.schema.temporal) for s in streams) else set()
    found |= {"relations"} if any(s.relations != TRUE for s in streams) else set()
    found |= (
        {"stages"}
        if any({o.stream.name for o in q.occurrences} & case.program.result_names for q in facts.queries)
        else set()
    )
    found |= {"union of queries"} if len(case.program.queries) > len(case.program.result_names) else set()
    found |= {"results"} if any(evaluate_program(case.program, as_tuples(case)).values()) else set()
    found |= (
        {"timestamps"} if any(a.type.kind.value == "timestamp" for s in streams for a in s.schema.attributes) else set()
    )
    return found


def test_most_programs_are_valid_and_yield_results_and_nothing_is_left_out() -> None:
    seen = Counter(feature for seed in range(CASES) for feature in features(seed))
    assert seen["valid"] >= 0.6 * CASES
    assert seen["results"] >= 0.6 * seen["valid"]
    common = (
        "inner", "left", "semi", "anti", "Product", "Select", "Project", "Rename", "Imbed", "Group", "Distinct", "Union",
        "Difference", "or", "not", "ne", "least", "greatest", "floor", "ceil", "self-join", "1 occurrences",
        "2 occurrences", "3 occurrences", "4 occurrences", "two progressing", "not progressing", "relations",
        "stages", "timestamps",
    )  # fmt: skip
    rare = ("count", "count_distinct", "sum", "min", "max", "avg", "first", "last", "union of queries", "static")
    assert [feature for feature in common if seen[feature] < 0.05 * CASES] == []
    assert [feature for feature in rare if seen[feature] < 0.01 * CASES] == []


def test_a_seed_gives_one_case_and_scripts_keep_its_promises() -> None:
    for seed in range(60):
        case = random_case(seed)
        assert str(case) == str(random_case(seed))
        script = random_script(case, 1)
        assert show_script(script) == show_script(random_script(case, 1))
        known = {(s.name, a): -INF for s in case.streams for a in s.progress}
        arrived: dict[str, list[str]] = {s.name: [] for s in case.streams}
        for step in script:
            for name, rows in step.rows.items():
                arrived[name] += map(str, rows)
                assert all(row[a] > b for row in rows for (n, a), b in known.items() if n == name)  # type: ignore[operator]  # instants
            for name, progress in step.progress.items():
                assert all(b >= known[name, a] for a, b in progress.items())
                known |= {(name, a): b for a, b in progress.items()}
        assert set(known.values()) <= {INF}
        assert {n: sorted(r) for n, r in arrived.items()} == {n: sorted(map(str, case.rows[n])) for n in arrived}
