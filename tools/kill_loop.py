"""Random kills of a running program: whatever is shot, whenever, the results in the end are those of an undisturbed
run.

    python tools/kill_loop.py --embedded 48 --spark 16 --workers 16 --seed 0

Each kill is a SIGKILL: of the whole process group of a run, embedded or on Spark with its JVM, or of one Python worker
of Spark or their daemon. A run is shot soon after a random batch, and then up to three times more while it recovers
from that. Runs are of three kinds in turn. Of the first kind they compact their results, as soon as there are two files
of a size, and archive the files that they read; most of their first shots fall soon after a compaction was begun. Of
the second they do neither, and of the third they leave results in the checkpoint, in packs. When a run has had its
share of kills it is left to end; then its results, counts and progress are compared with those of a run that nothing
disturbed, and another run of the next program begins. Prints a line for each kill, with what it left of the batch, and
one for each run; exit status 1 on the first difference, with the directory that shows it, or if nothing was compacted
or archived, or no kill met a compaction.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VICTIM = ROOT / "tools" / "victim.py"
sys.path.insert(0, str(ROOT))

from tests.runtime.faults.on_files import (  # noqa: E402  # found from wherever this is started
    answer,
    difference,
    undisturbed,
    write_files,
)
from tests.runtime.faults.scenarios import OVER_FILES, scenario  # noqa: E402
from tidegate.runtime.state.checkpoint import inspect  # noqa: E402
from tidegate.runtime.state.errors import StateError  # noqa: E402
from tidegate.runtime.state.manifest import marker_path  # noqa: E402
from tidegate.runtime.state.outputs.beside import UNFINISHED  # noqa: E402
from tidegate.runtime.state.outputs.compaction import parts_of  # noqa: E402
from tidegate.runtime.state.store.local import LocalStore  # noqa: E402
from tools.processes import command_line, descendants  # noqa: E402

#: Files of a run, each read in a batch of its own.
FILES = {"embedded": 20, "spark": 8, "workers": 10}
#: What most kills leave of a batch that was committed.
NOTHING = "nothing half done"
#: What runs do, in turn: `victim.py` says what it means. Programs are not a multiple of them, so each is run as each.
KINDS = ("tidy", "plain", "kept")
KILLS_PER_RUN = 4
#: No batch takes so long; a run that says nothing for that time hangs.
PATIENCE = 900.0
#: About how long opening a checkpoint and a batch take, in seconds.
OPENING = {"embedded": 0.1, "spark": 4.0, "workers": 4.0}
BATCH = {"embedded": 0.05, "spark": 1.0, "workers": 1.0}
#: About how long a compaction of few rows takes, and for a while the batches after it.
COMPACTION = {"embedded": 0.04, "spark": 0.1, "workers": 0.1}


@dataclass(slots=True)
class Lane:
    """The kills of one kind, one run after the other."""

    engine: str
    wanted: int
    rng: random.Random
    kills: int = 0
    runs: int = 0
    batches: int = 0
    recovering: int = 0
    deepest: int = 0
    left: dict[str, int] = field(default_factory=dict)
    compactions: int = 0
    """Kills soon after one was begun."""
    merged: int = 0
    archived: int = 0
    """Files that runs have merged others into, as they end, and files that they have archived."""

    @property
    def kind(self) -> str:
        """Of the run that goes on."""
        return KINDS[(self.runs - 1) % len(KINDS)]

    @property
    def never(self) -> list[str]:
        """What the lane is for and has not done in any of its runs, of which the first is tidy."""
        done = {"file was merged": self.merged, "file was archived": self.archived}
        if self.engine != "workers":  # they do not compact
            done["kill met a compaction"] = self.compactions
        return [what for what, count in done.items() if not count]

    def __str__(self) -> str:
        what = "kills of Python workers" if self.engine == "workers" else "kills of the process group"
        deep = f" ({self.recovering} of them in recoveries, up to {self.deepest} deep)" if self.recovering else ""
        left = ", ".join(f"{count} × {what}" for what, count in sorted(self.left.items()))
        return (
            f"{self.engine}: {self.kills} {what}{deep}, {self.compactions} soon after a compaction was begun, "
            f"{self.batches} batches in {self.runs} runs, all equal, with {self.merged} merged files of results and "
            f"{self.archived} archived files; {left}"
        )


class Wrong(Exception):
    """A run that did not end as it should have."""


class Process:
    """A running victim, in a process group of its own."""

    def __init__(self, place: Path, program: str, lane: Lane) -> None:
        command = [sys.executable, str(VICTIM), str(place), program, lane.engine, lane.kind]
        self._log = (place / "log").open("wb")
        self.process = subprocess.Popen(
            command,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=place,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": str(ROOT)},  # Spark's workers import this checkout too
        )
        self.place = place
        self._said = b""

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()

    def heard(self, word: str) -> bool:
        """Wait until the victim says the word; False if it ends before."""
        assert self.process.stdout is not None
        while True:
            line, newline, rest = self._said.partition(b"\n")
            if newline:
                self._said = rest
                if line.decode() == word:
                    return True
                continue
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            if not ready:
                raise Wrong(f"the run hangs in {self.place}")
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                self.process.wait(PATIENCE)
                return False
            self._said += more

    def lives(self, seconds: float) -> bool:
        """Whether it still runs after that time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self) -> bool:
        """Kill the process group; False if it had ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait(PATIENCE) == -signal.SIGKILL

    def ended(self) -> bool:
        """Wait for the end; whether it is one in good order."""
        while self.heard("batch"):
            pass
        return self.process.wait(PATIENCE) == 0


def main() -> int:
    options = _options()
    started = time.monotonic()
    wanted = {"spark": options.spark, "workers": options.workers, "embedded": options.embedded}
    lanes = [
        Lane(engine, kills, random.Random(f"{engine}/{options.seed}")) for engine, kills in wanted.items() if kills
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        went_well = list(pool.map(shoot_all, lanes))
    for lane, well in zip(lanes, went_well, strict=True):
        if well:
            print(lane)
            for what in lane.never:
                print(f"{lane.engine}: no {what}, so this shows nothing of it")
    print(f"{sum(lane.kills for lane in lanes)} kills in {time.monotonic() - started:.0f} s")
    return 0 if all(went_well) and not any(lane.never for lane in lanes) else 1


def shoot_all(lane: Lane) -> bool:
    """Runs of one program after the other until all kills are done; whether all went well."""
    for program in itertools.cycle(OVER_FILES):
        if lane.kills >= lane.wanted:
            return True
        place = Path(tempfile.mkdtemp(prefix=f"kill-loop-{lane.engine}-"))
        try:
            one_run(lane, program, place)
        except Wrong as failure:
            print(f"{lane.engine}, {program}: {failure}", flush=True)
            return False
        shutil.rmtree(place)
    raise AssertionError


def one_run(lane: Lane, program: str, place: Path) -> None:
    """One run from its first row to its end, killed again and again on the way."""
    write_files(scenario(program), place, range(FILES[lane.engine]), f"{lane.rng.random()}")
    lane.runs += 1
    share = min(lane.wanted, lane.kills + KILLS_PER_RUN)
    shoot = shoot_workers if lane.engine == "workers" else shoot_groups
    before = lane.kills
    while not shoot(lane, program, place, share):
        if lane.kills == before:
            raise Wrong(f"the run failed by itself in {place}:\n{(place / 'log').read_text()[-3000:]}")
        before = lane.kills
    check_end(lane, program, place)


def check_end(lane: Lane, program: str, place: Path) -> None:
    one = scenario(program)
    lane.batches += committed(place)
    wrong = difference(answer(one, place), undisturbed(one, place))
    if wrong is not None:
        raise Wrong(f"results differ from those of an undisturbed run in {place}: {wrong}")
    tidy = lane.kind == "tidy"
    beside = {f".{path.name}.compacted" for path in (place / "out").glob("*") if tidy}
    left = [path for path in (place / "out").rglob("*") if path.name.startswith(".") and path.name not in beside]
    left += [path for path in (place / "in").rglob("*.parquet") if tidy]
    if left:
        raise Wrong(f"left behind: {left[0]}")
    merged = sum(bool(parts_of(path)) for path in (place / "out").glob("*/*.parquet"))
    archived = sum(1 for _ in (place / "archive").rglob("*.parquet"))
    lane.merged, lane.archived = lane.merged + merged, lane.archived + archived
    did = f", {merged} merged files, {archived} archived" if tidy else ""
    print(
        f"{lane.engine:9} run {lane.runs} ({lane.kind}) of {program}: {committed(place)} batches{did}, results equal",
        flush=True,
    )


# --- shots


def shoot_groups(lane: Lane, program: str, place: Path, share: int) -> bool:
    """A kill after some batches and up to three more in recoveries from it; or, with no kill left, whether it ended
    well.
    """
    if lane.kills >= share:
        with Process(place, program, lane) as process:
            return process.ended()
    merging = lane.kind == "tidy" and (not lane.compactions or lane.rng.random() < 0.7)
    first = in_compaction if merging else after_batches
    for depth in range(lane.rng.choice((1, 2, 4))):
        with Process(place, program, lane) as process:
            before, lay = committed(place), set(beside(place))
            moment = first(lane, process) if depth == 0 else while_opening(lane, process)
            if moment is None:
                return process.process.returncode == 0
            if not process.kill():
                raise Wrong(f"the run ended by itself in {place}:\n{(place / 'log').read_text()[-3000:]}")
        lane.kills += 1
        if depth and committed(place) == before:
            lane.recovering += 1
            lane.deepest = max(lane.deepest, depth)
        lane.compactions += merging and depth == 0
        state = left_behind(place)
        if is_merging(place, lay):
            state = "a compaction half done" + ("" if state == NOTHING else f" and {state}")
        lane.left[state] = lane.left.get(state, 0) + 1
        told(lane, program, f"process group {moment}, left {state}")
        if lane.kills >= share:
            break
    return False


def shoot_workers(lane: Lane, program: str, place: Path, share: int) -> bool:
    """Kills of Python workers while the run goes on; whether it ended well."""
    with Process(place, program, lane) as process:
        while lane.kills < share:
            moment = after_batches(lane, process)
            if moment is None:
                break
            workers = python_workers(process.process.pid)
            if not workers:
                continue
            pid, kind = lane.rng.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                lane.kills += 1
                lane.left[kind] = lane.left.get(kind, 0) + 1
                told(lane, program, f"{kind} of {len(workers)} Python processes {moment}")
        return process.ended()


def told(lane: Lane, program: str, what: str) -> None:
    print(f"{lane.engine:9} {lane.kills:3}/{lane.wanted}  {program:22} {what}", flush=True)


def after_batches(lane: Lane, process: Process) -> str | None:
    """Wait for a random moment of the batch after some batches; None if the run ends before."""
    for _ in range(lane.rng.randint(1, 3)):
        if not process.heard("batch"):
            return None
    rest = lane.rng.random() * BATCH[lane.engine]
    return f"{rest:.3f} s after batch {committed(process.place)}" if process.lives(rest) else None


def in_compaction(lane: Lane, process: Process) -> str | None:
    """Wait for a random moment of a compaction, or soon after it; None if the run ends before."""
    for _ in range(lane.rng.randint(1, 2)):
        if not process.heard("compaction"):
            return None
    rest = lane.rng.random() * COMPACTION[lane.engine]
    return f"{rest:.3f} s into a compaction" if process.lives(rest) else None


def while_opening(lane: Lane, process: Process) -> str | None:
    """Wait for a random moment while a checkpoint is opened; None if the run ends before."""
    if not process.heard("opening"):
        return None
    rest = lane.rng.random() * OPENING[lane.engine]
    return f"{rest:.3f} s into the recovery" if process.lives(rest) else None


def committed(place: Path) -> int:
    """Batches committed so far, by the name of the last manifest."""
    return max((int(path.stem) for path in (place / "state" / "manifests").glob("*.json")), default=0)


def left_behind(place: Path) -> str:
    """What a kill left of the batch that it hit."""
    store = LocalStore(place / "state")
    try:
        found = inspect(store)
    except StateError:
        return "no checkpoint"
    last = found.manifest
    if last is not None and last.outputs and not store.exists(marker_path(last.seq)):
        return "a batch that is not published"
    if found.pending is not None:
        return "a batch that is not committed"
    return NOTHING if not store.list_files("tmp") else "a file half written"


def beside(place: Path) -> list[Path]:
    """Directories in which compactions have worked, or which they have replaced and not yet removed."""
    return [path for path in place.glob("out/.*.compacted/*") if path.is_dir()]


def is_merging(place: Path, before: Collection[Path]) -> bool:
    """Whether a compaction was begun since those lay there, and has not exchanged the directory."""
    new = [path for path in beside(place) if path not in before]
    return any(not any(path.iterdir()) or any(path.glob(f"*{UNFINISHED}")) for path in new)


def python_workers(pid: int) -> list[tuple[int, str]]:
    """Spark's Python processes below a process, and what each is."""
    found = [child for child in descendants(pid) if b"pyspark.daemon" in command_line(child)]
    return [(child, "the daemon" if descendants(child) else "a worker") for child in found]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedded", type=int, default=48, help="kills of embedded runs")
    parser.add_argument("--spark", type=int, default=16, help="kills of runs on Spark")
    parser.add_argument("--workers", type=int, default=16, help="kills of Python workers of runs on Spark")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
