"""The executions of the ISEQ paper against what interval sequences mean."""

from __future__ import annotations

from collections.abc import Iterable

from tests.properties.drive import Broken, Tally, as_tuples
from tests.strategies.programs import Case
from tests.strategies.streams import Script
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.testkit.interval_executions import EXECUTIONS, Execution, IntervalExecution, arrivals
from tidegate.runtime.testkit.interval_lists import interval_list


def check_executions(case: Case, script: Script, tally: Tally) -> None:
    """Each execution finds each combination once, when the last of its intervals ends.

    The script has the same rows as the case, or fewer while a failure is made smaller; how they arrive is no matter.
    """
    (query,) = case.program.queries
    assert isinstance(query.node, Match)
    meant = sorted(evaluate(query.node, as_tuples(case)))
    tally.results += len(meant)
    tally.with_results += bool(meant)
    intervals = intervals_of(case)
    for execution in EXECUTIONS:
        found = combinations(query.node, intervals, execution)
        if sorted(found) != meant:
            raise Broken(f"{execution}: found {sorted(found)}, meant {meant}")


def intervals_of(case: Case) -> list[tuple[str, int, int]]:
    """The intervals of a case: kind, start and end."""
    return [(str(row["kind"]), int(str(row["a"])), int(str(row["z"]))) for row in case.rows["E"]]


def combinations(node: Match, intervals: Iterable[tuple[str, int, int]], execution: Execution) -> list[tuple[int, ...]]:
    """What an execution finds, each with the instant at which it does."""
    running = IntervalExecution(interval_list(node), execution)
    return [
        (*found, arrival.at)
        for arrival in arrivals(intervals)
        for found in running.arrive(arrival, [role for role in node.symbols if role[0] == arrival.role])
    ]
