"""Plants one bug at a time in a copy of the tree and asks the test that has to notice it.

    python tools/planted_bugs.py [--group NAME ...] [--only NAME ...] [--jobs 2] [--resume FILE] [--list] [--record]

A bug is a patch: one file, a text that occurs in it exactly once, and what stands there instead. A patch that no
longer fits fails the run, and so does a run that is broken before any bug is planted. `planted/killers.toml` names
for each bug the test that kills it, which may be a long one; a bug that passes this test has survived, whatever other
tests say. A bug in the body of a function is tried first in a child of a process that has collected the tests; only
what this does not kill has a copy of the tree. For a bug without such a test the quick tests of its group run, up to
the first that fails; `--record` does so for all, and writes down which test that is. Tests that do not end in time
have not noticed the bug, unless it is marked as one that loops. Exit status 0 iff all bugs of the required list are
killed and at least 95 % of all. A resume file remembers what was found of this code; a run that is started again
leaves that out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.fuzz import code_hash  # noqa: E402  # found from wherever this is started
from tools.mutation.planted import find_kills  # noqa: E402
from tools.planted import GROUPS  # noqa: E402  # found from wherever this is started
from tools.planted.bugs import Bug, Patch  # noqa: E402

COPIED = ("algebra", "analysis", "contexts", "runtime", "tidegate", "tests", "tools", "pyproject.toml")
#: Seconds for each test, or file of tests, that a bug is shown to; and for all tests that one is which loops.
TIMEOUT = 420.0
LOOPING = 240.0
KILLERS = ROOT / "tools" / "planted" / "killers.toml"
#: Functions compiled as they are imported, which takes longer than most tests.
KERNELS = "runtime/kernels"


@dataclass(frozen=True, slots=True)
class Outcome:
    bug: Bug | None
    killed_by: str | None
    seconds: float
    detail: str = ""
    timed_out: bool = False

    def __str__(self) -> str:
        killer = (self.killed_by or "").rpartition("/")[2]
        told = f"killed by {killer}" if killer else "TIMED OUT" if self.timed_out else "SURVIVED"
        name = "no bug" if self.bug is None else self.bug.name
        return f"{'*' if self.bug and self.bug.required else ' '} {name:52} {told} ({self.seconds:.0f} s)"


def main() -> int:
    options = _options()
    if options.list:
        for group in GROUPS:
            print(f"{group.name}: {', '.join(group.tests)}")
            for bug in group.bugs:
                print(f"{'*' if bug.required else ' '} {bug.name:52} {bug.patches[0].file}")
        return 0
    known = {bug.name for group in GROUPS for bug in group.bugs}
    unknown = sorted({*options.only} - known) + sorted({*options.group} - {group.name for group in GROUPS})
    if unknown:
        print(f"no bugs or groups of these names (see --list): {', '.join(unknown)}")
        return 2
    unfit = [f"{bug.name}: {why}" for bug in all_bugs() for patch in bug.patches if (why := _misfit(patch, ROOT))]
    if unfit:
        print("patches that no longer apply:\n  " + "\n  ".join(unfit))
        return 2
    named = {} if options.record else killers()
    groups = [group for group in GROUPS if not options.group or group.name in options.group]
    chosen = [
        (bug, (named[bug.name],) if bug.name in named else group.tests)
        for group in groups
        for bug in group.bugs
        if bug.name in (options.only or known)
    ]
    started = time.monotonic()
    if absent := absent_tests({test for _, tests in chosen for test in tests if test in named.values()}):
        print("tests that killers.toml names and nobody has:\n  " + "\n  ".join(absent))
        return 2
    _compile()
    known_outcomes = _remembered(options.resume)
    bugs = {bug.name: bug for bug, _ in chosen}

    def found(name: str, test: str, seconds: float) -> None:
        known_outcomes[name] = Outcome(bugs[name], test, seconds)
        print(known_outcomes[name], flush=True)
        _remember(options.resume, [*known_outcomes.values()])

    asked = {name: named[name] for name in bugs if name in named and name not in known_outcomes}
    find_kills(asked, options.jobs, found)
    left = [tests for bug, tests in chosen if bug.name not in known_outcomes]
    if left and not options.only:
        sound = _run(None, tuple(dict.fromkeys(test for tests in left for test in tests)))
        if sound.killed_by is not None or sound.timed_out:
            print(f"the tests fail before any bug is planted: {sound}\n{sound.detail}")
            return 2
        print(f"no bug: all pass in {sound.seconds:.0f} s", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda one: _run(*one), [one for one in chosen if one[0].name not in known_outcomes]):
            assert outcome.bug is not None
            known_outcomes[outcome.bug.name] = outcome
            print(outcome, flush=True)
            _remember(options.resume, [*known_outcomes.values()])
    outcomes = [known_outcomes[name] for name in bugs]
    if options.record:
        record({o.bug.name: o.killed_by for o in outcomes if o.bug and o.killed_by})
    print(f"{summary(outcomes)}, in {time.monotonic() - started:.0f} s")
    return 0 if good(outcomes) else 1


def _remembered(file: Path | None) -> dict[str, Outcome]:
    """By the name of the bug, what an earlier run found of this very code."""
    if file is None or not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    if found["code"] != _code():
        print(f"{file} is of other code: starting anew", flush=True)
        return {}
    bugs = {bug.name: bug for bug in all_bugs()}
    return {name: Outcome(bugs[name], *told) for name, *told in found["outcomes"]}


@cache
def _code() -> str:
    """A digest of what is judged, as it is when the run begins."""
    return code_hash(ROOT, COPIED[:-1])


def _remember(file: Path | None, outcomes: Sequence[Outcome]) -> None:
    if file is None:
        return
    told = [(one.bug.name, one.killed_by, one.seconds, one.detail, one.timed_out) for one in outcomes if one.bug]
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps({"code": _code(), "outcomes": told}), encoding="utf-8")
    temporary.replace(file)


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


def all_bugs() -> list[Bug]:
    return [bug for group in GROUPS for bug in group.bugs]


def killers(file: Path = KILLERS) -> dict[str, str]:
    """By the name of a bug the test that kills it, as pytest names tests."""
    groups = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {bug: test for tests in groups.values() for bug, test in tests.items()}


def absent_tests(tests: Collection[str]) -> list[str]:
    """Those of the tests, as pytest names them, that are not there: renamed, or of other parameters."""
    single = {test for test in tests if "::" in test}
    files = sorted({test.partition("::")[0] for test in single})
    missing = {file for file in files if not (ROOT / file).exists()}
    there = [file for file in files if file not in missing]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "", *there]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False) if there else None
    collected = set(done.stdout.splitlines()) if done is not None else set()
    return sorted(single - collected)


def record(found: Mapping[str, str], file: Path = KILLERS) -> None:
    """Writes down which tests kill these bugs; of other bugs what was known stays."""
    known = {**killers(file), **found}
    lines = ["# The test that kills each planted bug. Written by `python tools/planted_bugs.py --record`.\n"]
    for group in GROUPS:
        lines.append(f"\n[{json.dumps(group.name)}]\n")
        names = [bug.name for bug in group.bugs if bug.name in known]
        lines += [f"{_toml(name)} = {_toml(known[name])}\n" for name in names]
    file.write_text("".join(lines), encoding="utf-8")


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _run(bug: Bug | None, tests: Sequence[str]) -> Outcome:
    """What the tests, one file after the other, say to a copy of the tree with the bug in it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder)
        patches = bug.patches if bug is not None else ()
        left_out = _left_out(_stale(patches))
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, symlinks=True, ignore=left_out)
            else:
                shutil.copy2(source, copy / name)
        for patch in patches:
            path = copy / patch.file
            path.write_text(path.read_text().replace(patch.old, patch.new))
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.cpython-*.pyc"):
                compiled.unlink()
        on_spark = bug is not None and any(_is_of_spark(patch) for patch in bug.patches)
        try:
            failure = _failed(
                copy, tests, on_spark=on_spark or bug is None, seconds=LOOPING if bug and bug.loops else None
            )
            # A test may fail for what others before it have left: then it is its file that kills.
            if (
                failure is not None
                and failure.test not in tests
                and _failed(copy, [failure.test], on_spark=True) is None
            ):
                failure = Failure(failure.test.partition("::")[0], failure.said)
        except subprocess.TimeoutExpired as late:
            killer = _unfinished(late) if bug is not None and bug.loops else None
            return Outcome(bug, killer, time.monotonic() - started, "timed out", timed_out=True)
    seconds = time.monotonic() - started
    return Outcome(bug, None, seconds) if failure is None else Outcome(bug, failure.test, seconds, failure.said)


def _compile() -> None:
    """Compiles modules and kernels beside their sources, where copies take them from."""
    subprocess.run([sys.executable, "tools/compile_kernels.py"], cwd=ROOT, check=True)
    folders = [name for name in COPIED if (ROOT / name).is_dir()]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], cwd=ROOT, check=True)


def _stale(patches: Sequence[Patch]) -> frozenset[str]:
    """The kernels that have a bug, or may have one inside: those that import, perhaps through others, one that is
    patched.
    """
    texts = {path.stem: path.read_text() for path in (ROOT / KERNELS).rglob("*.py")}
    stale = {Path(patch.file).stem for patch in patches if patch.file.startswith(KERNELS)}
    while True:
        more = {name for name, text in texts.items() if any(_imports(text, one) for one in stale)}
        if more <= stale:
            return frozenset(stale)
        stale |= more


def _imports(text: str, kernel: str) -> bool:
    """Whether a module imports from one with kernels, which may stand in a folder of its family."""
    return re.search(rf"runtime\.kernels\.(\w+\.)?{kernel} import", text) is not None


def _left_out(stale: Collection[str]) -> Callable[[str, list[str]], list[str]]:
    """What is not copied: the compiled kernels of these files."""

    def ignore(folder: str, names: list[str]) -> list[str]:
        if Path(folder).name != "__pycache__":
            return []
        return [name for name in names if name.endswith((".nbi", ".nbc")) and name.partition(".")[0] in stale]

    return ignore


def _is_of_spark(patch: Patch) -> bool:
    return patch.file.startswith("runtime/engines/spark/")


@dataclass(frozen=True, slots=True)
class Failure:
    """The first test that failed, and what pytest said."""

    test: str
    said: str


def _unfinished(late: subprocess.TimeoutExpired) -> str | None:
    """The test that was running when time was up."""
    said = (late.stdout or b"").decode(errors="replace")  # bytes, whatever the process was asked for
    running = re.findall(r"^(tests/\S+::.+?)(?: (?:PASSED|SKIPPED|XFAIL).*)?$", said, re.MULTILINE)
    return running[-1].strip() if running else None


def _failed(copy: Path, tests: Sequence[str], *, on_spark: bool, seconds: float | None = None) -> Failure | None:
    """The first of these tests that fails, if one does; a bug that keeps them from starting is an error of the patch.

    A test that is known to kill a bug runs, be it long or on Spark. Of others only quick ones do, and those on Spark
    for bugs of the Spark engine alone. They have `seconds` for all, or `TIMEOUT` for each.
    """
    known = frozenset(killers().values())
    named, others = (tuple(one for one in tests if (one in known and "::" in one) is here) for here in (True, False))
    quick = "not long" if on_spark else "not long and not spark"
    for some, marked in ((named, ""), (others, quick)):
        if some and (failure := _first_failure(copy, some, marked, seconds)) is not None:
            return failure
    return None


def _first_failure(copy: Path, tests: Sequence[str], marked: str, seconds: float | None) -> Failure | None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v" if seconds else "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-m",
        marked,
        *tests,
    ]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "TIDEGATE_SCALE": "1.5"}  # else all is compiled again
    done = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds or TIMEOUT * len(tests),
        check=False,
    )
    if done.returncode in (0, 5):  # 5: none of its tests is for the engine
        return None
    failures = re.findall(r"^(?:FAILED|ERROR) (tests/[^\s\[]+(?:\[.*?\])?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode == 1 and failures and "errors during collection" not in done.stdout:
        return Failure(failures[0], done.stdout[-3000:])
    raise RuntimeError(f"the tests do not even start:\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", nargs="*", default=[], help="names of groups of bugs")
    parser.add_argument("--only", nargs="*", default=[], help="names of bugs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", type=Path, help="file that remembers what was found")
    parser.add_argument("--record", action="store_true", help="find the test that kills each bug, and write it down")
    parser.add_argument("--list", action="store_true", help="print groups, their tests and bugs; * marks required ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
