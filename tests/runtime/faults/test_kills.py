"""Runs that are killed with contexts open, and Linear Road's: what they publish in the end is right."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from examples.linear_road.checker import check
from tests.examples.small_roads import bags
from tests.runtime.faults.on_files import answer, run_embedded, write_files
from tests.runtime.faults.scenarios import ROAD_SECONDS, arriving, scenario
from tools.kill_loop import FILES, KILLS_PER_RUN, KINDS, Lane, one_run

pytestmark = pytest.mark.long


def test_files_of_linear_road_are_answered_right(tmp_path: Path) -> None:
    """The run that killed ones are compared with: it rejects nothing, and meets accidents, tolls and charges."""
    one = scenario("Linear Road")
    write_files(one, tmp_path, range(FILES["embedded"]), "right")
    run_embedded(one, tmp_path)
    found = answer(one, tmp_path)
    last = max(at for at, _ in arriving("right"))
    assert last < ROAD_SECONDS * FILES["embedded"]
    right = check([row for _, row in arriving("right")])
    assert all((right.accidents, right.alerts, right.charges, right.balances, right.daily))
    assert {name: Counter(found.rows[name]) for name in bags(right)} == bags(right)
    assert not found.rejected


@pytest.mark.parametrize("program", ["within contexts", "Linear Road"])
def test_a_run_that_is_killed_ends_as_if_nothing_had_happened(program: str, tmp_path: Path) -> None:
    """Some times, in compactions, after batches and in recoveries; the process group is gone at once."""
    lane = Lane("embedded", KILLS_PER_RUN, random.Random(program))
    one_run(lane, program, tmp_path)
    assert lane.kind == "tidy"
    assert lane.kills > 1
    assert not lane.never


@pytest.mark.parametrize("kind", ["plain", "kept"])
def test_so_does_one_of_another_kind(kind: str, tmp_path: Path) -> None:
    """Without compaction; and with results in the checkpoint, few of which wait in packs."""
    lane = Lane("embedded", KILLS_PER_RUN, random.Random(kind), runs=KINDS.index(kind))
    one_run(lane, "chain of queries", tmp_path)
    assert lane.kind == kind
    assert lane.kills > 1
    assert (tmp_path / "out").exists() == (kind == "plain")
