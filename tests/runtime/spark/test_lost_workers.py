"""A lost worker, daemon or executor costs what its task and its memory have to read again, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.runtime.faults.on_files import Answer, answer, difference, run_embedded, streams_of, undisturbed, write_files
from tests.runtime.spark.lost_workers import FILES, IN_TASKS, RUNS, scenario
from tests.runtime.spark.watched_tasks import Attempt, attempts, losses
from tidegate.runtime.state.checkpoint import inspect, retained_manifests
from tidegate.runtime.state.leftovers import Retained, named
from tidegate.runtime.state.manifest import AREAS
from tidegate.runtime.state.store.local import LocalStore

pytestmark = [pytest.mark.long, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run that nothing disturbed, and one that lost many processes, have ended."""
    made = tmp_path_factory.mktemp("lost")
    write_files(scenario(), made, range(FILES))
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.spark.lost_workers", str(made), str(ROOT)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert losses(made / "losing" / "notes") == {loss.name for loss in IN_TASKS}
    return made


@pytest.fixture(scope="module")
def expected(place: Path) -> Answer:
    return undisturbed(scenario(), place)


@pytest.mark.parametrize("run", RUNS)
def test_results_and_counts_are_those_of_one_process(run: str, place: Path, expected: Answer) -> None:
    found = answer(scenario(), place / run)
    assert all(found.rows.values())
    assert difference(found, expected) is None


@pytest.mark.parametrize("run", RUNS)
def test_every_row_is_accepted_or_rejected_once(run: str, place: Path) -> None:
    counts = answer(scenario(), place / run).counts
    for stream in streams_of(scenario()):
        files = (place / "in" / stream).glob("*.parquet")
        assert counts[stream].rows_in == sum(pq.read_metadata(file).num_rows for file in files)
        assert counts[stream].rows_in == counts[stream].accepted + sum(counts[stream].rejected.values())
    assert sum(sum(one.rejected.values()) for one in counts.values()) > FILES


def test_the_run_goes_on_batch_by_batch(place: Path) -> None:
    sequences = []
    for run in RUNS:
        manifest = inspect(LocalStore(place / run / "state")).manifest
        assert manifest is not None
        sequences.append(manifest.seq)
    assert sequences[0] == sequences[1] >= FILES


def of_run(place: Path, run: str) -> list[Attempt]:
    return attempts(place / run / "notes")


def by_task(some: list[Attempt]) -> dict[object, list[Attempt]]:
    found: dict[object, list[Attempt]] = defaultdict(list)
    for one in some:
        found[one.task].append(one)
    return found


def test_a_task_is_done_again_for_each_process_that_was_lost_in_one(place: Path) -> None:
    quiet, losing = (by_task(of_run(place, run)) for run in RUNS)
    assert all(len(some) == 1 for some in quiet.values())
    assert quiet.keys() == losing.keys()
    again = sum(len(some) - 1 for some in losing.values())
    assert 0 < again <= len(IN_TASKS)


def test_segments_are_read_again_by_those_tasks_only(place: Path) -> None:
    quiet, losing = (by_task(of_run(place, run)) for run in RUNS)
    read_again = 0
    for task, (undisturbed_one,) in quiet.items():
        most = len(undisturbed_one.of("segments"))
        read = [len(one.of("segments")) for one in losing[task]]
        assert max(read) == most, task
        read_again += sum(read) - most
    assert read_again <= len(IN_TASKS) * max(len(one.of("segments")) for some in quiet.values() for one in some)
    assert read_again > 0


def test_a_worker_reads_of_operators_what_it_does_not_hold(place: Path) -> None:
    """What it has itself written last, it holds. Whoever else comes reads the state of the shard once."""
    kept = read = 0
    for run in RUNS:
        held: dict[tuple[str, int], int] = {}
        for one in of_run(place, run):
            if one.work != "evaluate_ordered":
                continue
            state = Counter(one.of("kernel"))
            assert set(state.values()) <= {1}, one
            if all(held.get((query, one.number)) == one.pid for query in one.queries):
                kept += 1
                assert not state, one
            read += len(state)
            if one.done:
                held |= {(query, one.number): one.pid for query in one.queries}
    assert kept
    assert read


@pytest.mark.parametrize("run", RUNS)
def test_a_worker_reads_a_static_table_once(run: str, place: Path) -> None:
    tables = Counter((one.pid, path) for one in of_run(place, run) for path in one.read if "/statics/" in path)
    assert tables
    assert set(tables.values()) == {1}


def of_lost_attempts(store: LocalStore) -> Iterator[str]:
    """Files that no manifest names."""
    known = named(map(Retained.of, retained_manifests(store)))
    return (path for area in AREAS for path in store.list_files(area) if path not in known)


def test_what_the_lost_have_written_is_removed(place: Path) -> None:
    """At the next start at the latest."""
    store = LocalStore(place / "losing" / "state")
    assert any(of_lost_attempts(store))
    run_embedded(scenario(), place / "losing")
    assert not [*of_lost_attempts(store)]
    assert not store.list_files("tmp")
