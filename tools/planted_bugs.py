"""Plants one bug at a time in a copy of the tree and asks the property tests whether they notice.

    python tools/planted_bugs.py [--only NAME ...] [--jobs 2] [--list]

A bug is a patch: one file, a text that occurs in it exactly once, and what stands there instead. A patch that no longer
fits fails the run, and so does a run that is broken before any bug is planted. Tests that do not end in time have not
noticed the bug, unless it is marked as one that loops. Exit status 0 iff all bugs of the required list are killed and at
least 95 % of all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.planted_bug_list import (  # noqa: E402  # found from wherever this is started
    ARRIVING,
    BUGS,
    COMMON,
    INPUT,
    PROTOCOL,
    PURGING,
    RECURSIVE,
    SHARDING,
    USE,
    Bug,
    Patch,
)

COPIED = ("algebra", "analysis", "contexts", "runtime", "tidegate", "tests", "tools", "pyproject.toml")
TESTS = ("tests/properties/test_tight.py", "tests/properties/test_rules.py", "tests/properties/test_embedded.py")
#: What shows a bug in how common parts are found and computed, besides the engine's property tests.
COMMON_TESTS = ("tests/algebra/test_rewrites.py", "tests/runtime/test_common.py")
#: What shows a bug in how rows are judged, and in what `why` says.
INPUT_TESTS = ("tests/properties/test_why.py", "tests/properties/test_conservation.py")
#: What shows a bug in the commit protocol and in recovery.
PROTOCOL_TESTS = (
    "tests/runtime/faults/test_failpoints.py::test_a_run_that_crashes_in_every_batch_and_every_recovery",
    "tests/runtime/state/test_checkpoint.py::test_the_manifest_alone_keeps_writers_apart",
    "tests/runtime/faults/test_storage.py::test_a_disk_that_fails",
)
#: What shows a bug in recursion.
RECURSIVE_TESTS = ("tests/properties/test_recursive.py",)
#: What shows a bug in how keys to shard by are found.
SHARDING_TESTS = ("tests/runtime/test_sharding.py",)
#: What shows a bug in partner or kill rule: rules off, the other tests never meet them.
PURGING_TESTS = ("tests/runtime/test_purge.py", "tests/properties/test_purge.py")
#: What shows a bug in what is told of a run and of a checkpoint.
USE_TESTS = (
    "tests/runtime/test_state_listing.py",
    "tests/runtime/test_metrics.py",
    "tests/runtime/test_graph.py",
    "tests/runtime/test_session.py",
)
#: What shows a bug in times of arrival: other tests have none.
ARRIVING_TESTS = ("tests/runtime/test_arrival.py",)
TIMEOUT = 420.0


@dataclass(frozen=True, slots=True)
class Outcome:
    bug: Bug | None
    killed_by: str | None
    seconds: float
    detail: str = ""
    timed_out: bool = False

    def __str__(self) -> str:
        told = f"killed by {self.killed_by}" if self.killed_by else "TIMED OUT" if self.timed_out else "SURVIVED"
        name = "no bug" if self.bug is None else self.bug.name
        return f"{'*' if self.bug and self.bug.required else ' '} {name:52} {told} ({self.seconds:.0f} s)"


def main() -> int:
    options = _options()
    if options.list:
        print("\n".join(f"{'*' if b.required else ' '} {b.name:52} {b.patches[0].file}" for b in BUGS))
        return 0
    unknown = sorted(set(options.only) - {bug.name for bug in BUGS})
    if unknown:
        print(f"no bugs of these names (see --list): {', '.join(unknown)}")
        return 2
    unfit = [f"{b.name}: {why}" for b in BUGS for patch in b.patches if (why := _misfit(patch, ROOT)) is not None]
    if unfit:
        print("patches that no longer apply:\n  " + "\n  ".join(unfit))
        return 2
    chosen = [bug for bug in BUGS if not options.only or bug.name in options.only]
    started = time.monotonic()
    if not options.only:
        sound = _run(None)
        if sound.killed_by is not None or sound.timed_out:
            print(f"the tests fail before any bug is planted: {sound}\n{sound.detail}")
            return 2
        print(f"no bug: all pass in {sound.seconds:.0f} s", flush=True)
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(_run, chosen):
            outcomes.append(outcome)
            print(outcome, flush=True)
    print(f"{summary(outcomes)}, in {time.monotonic() - started:.0f} s")
    return 0 if good(outcomes) else 1


def summary(outcomes: Sequence[Outcome]) -> str:
    killed, late = sum(1 for o in outcomes if o.killed_by), sum(1 for o in outcomes if o.timed_out and not o.killed_by)
    return (
        f"{killed} of {len(outcomes)} planted bugs killed, {late} timed out, {len(outcomes) - killed - late} survived"
    )


def good(outcomes: Sequence[Outcome]) -> bool:
    """Whether all required bugs are killed and at least 95 % of all."""
    missed = [o for o in outcomes if not o.killed_by]
    return not any(o.bug and o.bug.required for o in missed) and len(missed) <= 0.05 * len(outcomes)


def _misfit(patch: Patch, root: Path) -> str | None:
    path = root / patch.file
    if not path.exists():
        return f"{patch.file} does not exist"
    text = path.read_text()
    count = text.count(patch.old)
    if count != 1 or patch.old == patch.new:
        return f"its text occurs {count} times in {patch.file}"
    try:
        compile(text.replace(patch.old, patch.new), patch.file, "exec")
    except SyntaxError as error:
        return f"{patch.file}: {error}"
    return None


def _run(bug: Bug | None) -> Outcome:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, copy / name)
        for patch in bug.patches if bug is not None else ():
            path = copy / patch.file
            path.write_text(path.read_text().replace(patch.old, patch.new))
        for tests in _tests(bug):
            try:
                failed = _failed(copy, tests)
            except subprocess.TimeoutExpired:
                loops = bug is not None and bug.loops
                killer = f"{Path(tests).name}, which did not end" if loops else None
                return Outcome(bug, killer, time.monotonic() - started, "timed out", timed_out=True)
            if failed is not None:
                return Outcome(bug, Path(tests).name, time.monotonic() - started, failed)
    return Outcome(bug, None, time.monotonic() - started)


def _tests(bug: Bug | None) -> tuple[str, ...]:
    """The tests that a bug can show in, the quick ones first: those of the rules never load an engine."""
    if bug is None:
        groups = (COMMON_TESTS, TESTS, INPUT_TESTS, RECURSIVE_TESTS, SHARDING_TESTS, PURGING_TESTS, USE_TESTS)
        return tuple(test for group in (*groups, ARRIVING_TESTS, PROTOCOL_TESTS) for test in group)
    if bug in COMMON:
        return (*COMMON_TESTS, TESTS[-1])
    if bug in PROTOCOL:
        return PROTOCOL_TESTS
    if bug in INPUT:
        return INPUT_TESTS
    if bug in PURGING:
        return PURGING_TESTS
    if bug in USE:
        return USE_TESTS
    if bug in ARRIVING:
        return ARRIVING_TESTS
    if bug in SHARDING:
        return SHARDING_TESTS
    if bug in RECURSIVE:
        return RECURSIVE_TESTS
    runtime = all(p.file.startswith(("runtime/", "algebra/rewrites/")) for p in bug.patches)
    return TESTS[-1:] if runtime else TESTS


def _failed(copy: Path, tests: str) -> str | None:
    """What the tests said if any failed; a bug that keeps them from starting is an error of the patch."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=short", tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TIDEGATE_SCALE": "1.5"}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode == 0:
        return None
    if done.returncode == 1 and "errors during collection" not in done.stdout:
        return done.stdout[-3000:]
    raise RuntimeError(f"the tests do not even start:\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names of bugs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the bugs; * marks required ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
