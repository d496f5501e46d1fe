"""A crash at every step of the commit protocol, in programs of every kind: a restart ends as if nothing had
happened.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.properties.delays import counting_joined
from tests.properties.drive import Tally
from tests.runtime.faults import on_files
from tests.runtime.faults.on_files import (
    answer,
    compacting_soon,
    difference,
    run_embedded,
    run_on_spark,
    write_files,
)
from tests.runtime.faults.scenarios import (
    MAKERS,
    STEPS,
    again,
    crashed,
    go_on,
    opened,
    outcome,
    passings,
    scenario,
    undisturbed,
)
from tests.shards import cases
from tidegate import testing
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.failpoints import COMPACTION, FAILPOINTS, PUT_AWAY, SimulatedCrash, crash
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Reached only by a start after a crash: what has to happen first, how many deletions then are passed over.
AFTER_A_CRASH = {
    "recover-before-publish": "commit-after-manifest",
    "recover-during-sweep": "commit-before-manifest",
}
NAMES = sorted(MAKERS)
#: Passed where results are published, so without packs, in which these few would wait.
PUBLISHING = {"store-publish-copied", "store-publish-linked", "commit-after-output"}


def spread(count: int, wanted: int) -> list[int]:
    """Of `count` passings of a failpoint so many, first and last among them."""
    if count <= wanted:
        return list(range(count))
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


def finished(name: str, store: Store) -> None:
    go_on(scenario(name), again(store))
    assert outcome(scenario(name), store) == undisturbed(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_failpoint_is_passed(name: str) -> None:
    """All but those of a recovery by an undisturbed run, those in the restart after a crash."""
    both = {*passings(name), *passings(name, packs=False)}
    assert set(FAILPOINTS) - both == set(AFTER_A_CRASH) | PUT_AWAY
    assert passings(name)["commit-after-manifest"] == STEPS
    for failpoint, before in AFTER_A_CRASH.items():
        store: Store = MemoryStore(packs=True)
        assert crashed(name, store, before, STEPS // 2, crash)
        store = again(store)
        store.failpoints.record()
        go_on(scenario(name), store)
        assert store.failpoints.passed is not None
        assert store.failpoints.passed.get(failpoint, 0) > 0


def test_events_are_joined_into_event_runs_and_others_wait() -> None:
    tally, waiting = Tally(), []
    store: Store = MemoryStore(packs=True)
    with counting_joined(tally):
        for done in range(1, STEPS):
            go_on(scenario("event runs"), store, until=done)
            store = again(store)
            with opened(scenario("event runs"), store) as session:
                waiting.append(session.live_rows())
    assert tally.joined > 20
    assert sum(rows["E#0"] > 0 for rows in waiting) > 2
    assert sum(rows["Early: situations"] > 0 for rows in waiting) > 2


def test_contexts_hold_between_batches() -> None:
    """So that a crash meets windows that are open, with their causes."""
    held, stored = [], []
    store: Store = MemoryStore(packs=True)
    for done in range(1, STEPS):
        go_on(scenario("within contexts"), store, until=done)
        store = again(store)
        with opened(scenario("within contexts"), store) as session:
            live = session.live_rows()
            held.append(live["Places: contexts that hold"])
            stored.append(sum(live.values()) - held[-1])
    assert sum(many > 0 for many in held) > 2
    assert max(stored) > 0


@pytest.mark.parametrize(
    ("name", "waiting"),
    [
        ("row pattern", ("Turns: state", "Rising: state", "Quiet: state", "Skipped: state", "Overlapping: state")),
        ("interval sequence", ("E#0", "F#0", "Three: situations", "beginnings of G")),
    ],
)
def test_partial_matches_are_in_flight_between_batches(name: str, waiting: tuple[str, ...]) -> None:
    store: Store = MemoryStore(packs=True)
    found = []
    for done in range(1, STEPS):
        go_on(scenario(name), store, until=done)
        store = again(store)
        with opened(scenario(name), store) as session:
            found.append(session.live_rows())
    for what in waiting:
        assert sum(rows[what] > 0 for rows in found) > 2, (what, found)


#: Where a step can die in an undisturbed run.
DYING = sorted(set(FAILPOINTS) - set(AFTER_A_CRASH) - PUT_AWAY)


def is_quick(name: str, failpoint: str) -> bool:
    """Whether a program and a failpoint meet in `make test`: each meets a sixth of the others."""
    return (NAMES.index(name) + DYING.index(failpoint)) % 6 == 0


@pytest.mark.parametrize(("name", "failpoint"), cases(itertools.product(NAMES, DYING), is_quick))
def test_a_crash_at_any_step_changes_nothing(name: str, failpoint: str) -> None:
    """At one passing here, another for each program; at many in the long form."""
    packs = failpoint not in PUBLISHING
    count = passings(name, packs=packs)[failpoint]
    store = MemoryStore(packs=packs)
    skip = (NAMES.index(name) * 7 + FAILPOINTS.index(failpoint) * 3) % count
    assert crashed(name, store, failpoint, skip, crash)
    finished(name, store)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", DYING)
@pytest.mark.parametrize("name", NAMES)
def test_a_crash_at_any_passing_in_a_directory_changes_nothing(name: str, failpoint: str, tmp_path: Path) -> None:
    crashes = 0
    packs = failpoint not in PUBLISHING
    for skip in spread(passings(name, packs=packs)[failpoint], 8):
        store = LocalStore(tmp_path / str(skip), sync=False)
        store.packs = packs
        crashes += crashed(name, store, failpoint, skip, crash)
        finished(name, store)
    assert crashes or failpoint == "store-publish-copied"  # a directory of the same file system links


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_crashes_in_every_batch_and_every_recovery(name: str) -> None:
    """Before and after each commit in turn, and in each restart three deep: publishing, its note, the sweep."""
    store: Store = MemoryStore(packs=True)
    crashes = 0
    for failpoint in itertools.cycle(("commit-before-manifest", "commit-after-manifest")):
        store = again(store)
        if not crashed(name, store, failpoint, 0, crash):
            break
        crashes += 1
        before = inspect(store).manifest
        for deeper in (
            "recover-before-publish",
            "commit-before-marker",
            "recover-during-sweep",
            "recover-before-sweep",
        ):
            store = again(store)
            store.failpoints.arm(deeper, crash)
            try:
                go_on(scenario(name), store, until=0)
            except SimulatedCrash:
                crashes += 1
        assert inspect(store).manifest == before
    assert crashes >= 3 * STEPS
    finished(name, store)


#: Files of a run that compacts: so many that all programs but one, of which few rows have no partner, have results to
#: merge.
FEW_FILES = 12
COMPACTING = [name for name in NAMES if name != "anti-join"]


def is_quick_to_compact(name: str, failpoint: str) -> bool:
    """Whether they meet in `make test`: each failpoint once."""
    return COMPACTING.index(name) == 5 * COMPACTION.index(failpoint)


@pytest.mark.parametrize(("name", "failpoint"), cases(itertools.product(COMPACTING, COMPACTION), is_quick_to_compact))
def test_a_crash_while_a_run_compacts_its_results_changes_nothing(
    name: str, failpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first compaction, or in the second; then the run goes on, compacts and archives."""
    monkeypatch.setattr("tidegate.runtime.engines.compactions._ROWS", 10**9)  # each is ended as soon as it is begun
    one = scenario(name)
    write_files(one, tmp_path, range(FEW_FILES))
    store = LocalStore(tmp_path / "state", sync=False)
    store.failpoints.arm(failpoint, crash, skip=COMPACTING.index(name) % 2)
    with compacting_soon():
        with pytest.raises(SimulatedCrash):
            run_embedded(one, tmp_path, tidy=True, store=store)
        run_embedded(one, tmp_path, tidy=True)
    assert difference(answer(one, tmp_path), on_files.undisturbed(one, tmp_path)) is None


@pytest.mark.long
@pytest.mark.spark
def test_crashes_while_a_run_on_spark_compacts_its_results_change_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one run at each failpoint in turn, each time after some files more."""
    monkeypatch.setattr("tidegate.runtime.engines.compactions._ROWS", 10**9)
    one = scenario("within contexts")
    with compacting_soon():
        for number, failpoint in enumerate(COMPACTION):
            write_files(one, tmp_path, range(5 * number, 5 * number + 5))
            store = LocalStore(tmp_path / "state")
            store.failpoints.arm(failpoint, crash)
            with pytest.raises(Exception, match="SimulatedCrash"):
                run_on_spark(one, tmp_path, spark, bounded=False, tidy=True, store=store)
        run_on_spark(one, tmp_path, spark, tidy=True)
    assert difference(answer(one, tmp_path), on_files.undisturbed(one, tmp_path)) is None


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_a_crash_at_any_step_on_spark(name: str, spark: SparkSession) -> None:
    """The same on Spark: at each place where a step can die, in another batch each; rows as embedded, each once."""
    waiting = list(testing.PLACES_TO_DIE)
    while waiting:
        before = len(waiting)
        run_that_dies(name, spark, waiting)
        assert len(waiting) < before, f"no step comes to {waiting[0]}"


def run_that_dies(name: str, spark: SparkSession, waiting: list[str]) -> None:
    """A run on Spark of which every step dies at the first of the places that is left, if it comes there."""
    one = scenario(name)
    wanted = undisturbed(name).results
    with testing.drive(one.program, spark=spark, sources=one.sources, statics=one.statics) as run:
        for step in one.steps:
            for stream, rows in step.rows.items():
                run.add(stream, rows)
            for stream, reached in step.advances.items():
                run.advance(stream, t=reached)
            if waiting:
                # Few rows are published only where they do not wait in packs.
                run.engine.store.packs = waiting[0] not in PUBLISHING
                run.kill(waiting[0])
                try:
                    run.step()
                    del waiting[0]
                except AssertionError as failure:
                    # A batch does not come everywhere: without results it publishes none.
                    if "was not killed" not in str(failure):
                        raise
            else:
                run.step()
        found = {stream: sorted(tuple(row.values()) for row in run.results(stream)) for stream in wanted}
    assert found == wanted
