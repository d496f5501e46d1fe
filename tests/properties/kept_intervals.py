"""What an engine keeps of intervals, beside what the executions of the ISEQ paper keep of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.properties.drive import Broken, Tally
from tests.properties.executions import intervals_of
from tests.strategies.programs import Case
from tidegate.algebra.ordered.match.node import Match
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.testkit.interval_executions import Arrival, Execution, IntervalExecution, arrivals
from tidegate.runtime.testkit.interval_lists import interval_list


def check_kept(
    case: Case, facts: ProgramFacts, tally: Tally, executions: Sequence[Execution], purging: PurgeMode = "always"
) -> None:
    """Once all that has happened up to an instant is known, no execution keeps fewer intervals than are stored.

    Every row comes at its end, its beginning before if the stream tells it, and partners are looked for after each
    instant.
    """
    (query,) = case.program.queries
    assert isinstance(query.node, Match)
    of = interval_list(query.node)
    running = {execution: IntervalExecution(of, execution) for execution in executions}
    options = RunOptions(collect_garbage="exact", purging=purging)
    with Session(facts, options=options) as session:
        for instant, coming in _by_instant(case):
            rows = [row for row in case.rows["E"] if row["z"] == instant]
            if "id" in case.rows["E"][0]:
                rows += [{**row, "z": None} for row in case.rows["E"] if row["a"] == instant]
            if rows:
                session.push("E", rows)
            session.advance("E", {"z": instant})
            session.step()
            stored = sum(rows for name, rows in session.live_rows().items() if name.startswith("E#"))
            tally.collected += sum(1 for row in case.rows["E"] if int(str(row["z"])) <= instant) - stored
            for execution, one in running.items():
                for arrival in coming:
                    one.arrive(arrival, [role for role in of.roles if role[0] == arrival.role])
                kept = one.ended()
                if stored > kept:
                    raise Broken(f"at {instant}: {stored} intervals are stored, {execution} keeps {kept}")
                tally.freed += kept - stored
    tally.runs += 1


def _by_instant(case: Case) -> Iterator[tuple[int, list[Arrival]]]:
    """Each instant at which an interval begins or ends, with what comes then."""
    by_instant: dict[int, list[Arrival]] = {}
    for arrival in arrivals(intervals_of(case)):
        by_instant.setdefault(arrival.at, []).append(arrival)
    yield from by_instant.items()
