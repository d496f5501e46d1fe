"""The families of random checks: what a test runs a few hundred times, `tools/fuzz.py` many thousand times."""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal
from unittest.mock import patch

from tests.properties.delays import in_few_batches
from tests.properties.drive import Broken, Tally, check_rules
from tests.strategies.asof import random_asof_case
from tests.strategies.composed import random_composed_case
from tests.strategies.contexts import random_contexts_case
from tests.strategies.contexts_above import random_above_case
from tests.strategies.contexts_inside import random_inside_case
from tests.strategies.counted import random_counted_case
from tests.strategies.folds import random_folding_case
from tests.strategies.interval_sequences import mixed_interval_sequence_case, random_interval_sequence_case
from tests.strategies.operators import random_operator_case
from tests.strategies.over import random_over_case
from tests.strategies.parts import random_parts_case
from tests.strategies.programs import DECIDED, JOINED, ONE_QUERY, STAGED, WINDOWED, Case, Options, random_case
from tests.strategies.ranks import random_ranks_case
from tests.strategies.recursive import random_recursive_case
from tests.strategies.sequences import random_sequences_case
from tests.strategies.situations import random_situation_case
from tests.strategies.streams import Script, random_script, show_script, shrink
from tests.strategies.ticks import random_ticks_case
from tests.strategies.versions import random_versions_case
from tests.strategies.windows import random_windows_case
from tidegate.algebra.errors import QueryError
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser.programs import optimised

#: Of so many cases one is run in another way, too.
RUN = 10
#: Batches of a case that is run in another way, too, where batches are few.
FEW = 4

Check = Callable[[Case, Script, ProgramFacts, Tally], None]


@dataclass(slots=True)
class Family:
    """A check over random cases. A seed gives a case and its arrival scripts, `run` what it breaks, shrunk, or None."""

    check: Check
    options: Options | None = None
    make: Callable[[int], Case] | None = None
    scripts: int = 3
    tally: Tally = field(default_factory=Tally)

    def run(self, seed: int) -> str | None:
        self.tally.cases += 1
        try:
            # What is refused as it is written is no case either.
            case = random_case(seed, self.options) if self.make is None else self.make(seed)
            facts = analyse(case.program)
        except QueryError as error:
            self.tally.rejected.update({problem.code for problem in error.problems})
            return None
        self.tally.valid += 1
        for number in range(self.scripts):
            script = random_script(case, number)
            found = self.failure(case, script, facts)
            if found is not None:
                small, less = shrink(case, script, lambda c, s: self.failure(c, s, facts) is not None)
                return f"{self.failure(small, less, facts)}\n{small}\n{show_script(less)}"
        return None

    def failure(self, case: Case, script: Script, facts: ProgramFacts) -> str | None:
        try:
            self.check(case, script, facts, self.tally)
        except Broken as broken:
            return str(broken)
        except Exception as error:  # noqa: BLE001  # a crash is a failing case like any other, to be shrunk and shown
            return "".join(traceback.format_exception(error, limit=-4))
        return None


def by_rules(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """Pass and propagation alone, then with keep and relevance as well."""
    check_rules(case, script, facts, tally, lean=False)
    check_rules(case, script, facts, tally, lean=True)


def by_lagging_rules(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """Keep and relevance, then partner and kill rule as well, with queries in any order that lag as they like."""
    check_rules(case, script, facts, tally, lean=True, lagging=True)
    check_rules(case, script, facts, tally, lean=True, purging=True, lagging=True)


def by_embedded(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine; imported late, so that the rules can be checked without it."""
    from tests.properties.engines import check_embedded

    check_embedded(case, script, facts, tally)


def by_delays(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine, every other time with a delay that the rows keep."""
    from tests.properties.engines import check_embedded

    check_embedded(case, script, facts, tally, delays=True)


def by_frames(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The same, in two of three cases with frames of any few rows made of blocks of rows."""
    from tidegate.runtime.ordered.over.queued import layout

    few = random.Random(f"few {case.seed}").choice((0, 3, layout.FEW_ROWS))
    with patch.object(layout, "FEW_ROWS", few):
        by_delays(case, script, facts, tally)


def by_optimised(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """A program with contexts as it was written, and what the optimiser makes of it: where it changes something the
    program as it was written has few batches.
    """
    changed = optimised(case.program, facts)
    if changed is not facts:
        tally.optimised += 1
        by_delays(case, script, changed, tally)
        script = in_few_batches(script, FEW)
    by_delays(case, script, facts, tally)


def by_any_turns(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine with any turns and any progress that lags."""
    from tests.properties.schedules import check_any_turns

    check_any_turns(case, script, facts, tally)


def by_schedule(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine with a schedule as users give it."""
    from tests.properties.schedules import check_scheduled

    check_scheduled(case, script, facts, tally)


def by_purge_rules(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """Keep and relevance, and partner and kill rule after every step."""
    check_rules(case, script, facts, tally, lean=True, purging=True)


def by_purging(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine with partner and kill rule used wherever they apply, after every batch."""
    from tests.properties.engines import check_embedded

    check_embedded(case, script, facts, tally, purge="exact")


def by_looks(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The same with both rules looking at a few rows at a time."""
    from tests.properties.engines import check_embedded

    check_embedded(case, script, facts, tally, purge="amortised")


def by_folding(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine, in two cases of three with partner and kill rule over folded rows."""
    from tests.properties.engines import check_embedded

    purge: Literal["exact", "amortised"] | None = ("exact", "amortised", None)[case.seed % 3]
    check_embedded(case, script, facts, tally, purge=purge)


def by_executions(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The executions of the ISEQ paper, and of some cases the embedded engine, and what it keeps."""
    from tests.properties.executions import check_executions
    from tests.properties.kept_intervals import check_kept

    check_executions(case, script, tally)
    if case.seed % RUN == 0:
        by_delays(case, script, facts, tally)
        check_kept(case, facts, tally, ("naive", "stacks"))


def by_beginnings(case: Case, _script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine where intervals tell when they begin: what it finds, and what it keeps."""
    from tests.properties.begun_intervals import check_begun
    from tests.properties.kept_intervals import check_kept

    check_begun(case, facts, tally)
    check_kept(case, facts, tally, ("naive", "stacks", "punctuated"))


def by_either_purging(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """The embedded engine with both rules used wherever they apply: all at once, or a few rows at a time."""
    (by_purging if case.seed % 2 else by_looks)(case, script, facts, tally)


FAMILIES: dict[str, Family] = {
    "rules": Family(by_rules, ONE_QUERY),
    "staged": Family(by_rules, STAGED),
    "embedded": Family(by_embedded, scripts=1),
    "windows": Family(by_embedded, WINDOWED, scripts=1),
    "partners": Family(by_purge_rules, JOINED),
    "kills": Family(by_purge_rules, DECIDED),
    "purging": Family(by_purging, DECIDED, scripts=1),
    "looks": Family(by_looks, DECIDED, scripts=1),
    "looks-joined": Family(by_looks, JOINED, scripts=1),
    "situations": Family(by_delays, make=random_situation_case, scripts=1),
    "operators": Family(by_delays, make=random_operator_case, scripts=1),
    "over": Family(by_frames, make=random_over_case, scripts=1),
    "composed": Family(by_delays, make=random_composed_case, scripts=1),
    "contexts": Family(by_optimised, make=random_contexts_case, scripts=1),
    "contexts-above": Family(by_optimised, make=random_above_case, scripts=1),
    "contexts-inside": Family(by_optimised, make=random_inside_case, scripts=1),
    "asof": Family(by_delays, make=random_asof_case, scripts=1),
    "ranks": Family(by_delays, make=random_ranks_case, scripts=1),
    "versions": Family(by_delays, make=random_versions_case, scripts=1),
    "row-windows": Family(by_delays, make=random_windows_case, scripts=1),
    "counted": Family(by_delays, make=random_counted_case, scripts=1),
    "sequences": Family(by_delays, make=random_sequences_case, scripts=1),
    "iseq": Family(by_executions, make=random_interval_sequence_case, scripts=1),
    "iseq-begun": Family(by_beginnings, make=partial(random_interval_sequence_case, begins=True), scripts=1),
    "iseq-derived": Family(by_either_purging, make=mixed_interval_sequence_case, scripts=1),
    "ticks": Family(by_delays, make=random_ticks_case, scripts=1),
    "folding": Family(by_folding, make=random_folding_case, scripts=1),
    "folding-turns": Family(by_any_turns, make=random_folding_case, scripts=1),
    "parts": Family(by_folding, make=random_parts_case, scripts=1),
    "parts-turns": Family(by_any_turns, make=random_parts_case, scripts=1),
    "lagging": Family(by_lagging_rules, STAGED),
    "lagging-recursive": Family(by_lagging_rules, make=random_recursive_case, scripts=1),
    "turns": Family(by_any_turns, STAGED, scripts=1),
    "turns-kills": Family(by_any_turns, DECIDED, scripts=1),
    "scheduled": Family(by_schedule, STAGED, scripts=1),
    "scheduled-recursive": Family(by_schedule, make=random_recursive_case, scripts=1),
    "scheduled-over": Family(by_schedule, make=random_over_case, scripts=1),
    "scheduled-parts": Family(by_schedule, make=random_parts_case, scripts=1),
    "turns-recursive": Family(by_any_turns, make=random_recursive_case, scripts=1),
    "recursive": Family(by_rules, make=random_recursive_case, scripts=2),
    "recursive-embedded": Family(by_embedded, make=random_recursive_case, scripts=1),
}


def seeds(default: int) -> range:
    """Seeds of a test run: `TIDEGATE_SEED` is the first, `TIDEGATE_SCALE` multiplies their number."""
    first = int(os.environ.get("TIDEGATE_SEED", "0"))
    return range(first, first + int(default * float(os.environ.get("TIDEGATE_SCALE", "1"))))
