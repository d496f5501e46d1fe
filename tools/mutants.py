"""Mutants drawn by a tool: changes of one place in one function, of which the tests have to notice each.

    python tools/mutants.py --count 1000 --shard 1/2 --resume out/mutants-1.json
    python tools/mutants.py --group joins --count 50 --seed 3
    python tools/mutants.py --group joins --only "runtime/plan/join_parts.py::_side: ..."

Mutants are drawn by seed, as many of each group of `tools/mutation/groups.py`; shard i of k takes each k-th. A group is
one process: tests are collected there, each runs once to see that it passes, what it takes, and which functions it
calls. For each mutant the process forks; the child has the mutant, runs the tests that call its function, the quickest
first and those that call few others, and ends at the first that fails. A test that takes ten times as long as it did
has noticed the mutant as well.

`tools/mutation/equivalent.toml` lists mutants that mean the same as the original, each with the reason; they are not
run, printed, and not counted. The score is killed / (drawn - equivalent). Exit status 0 iff the score is at least
`--at-least`, that of each group at least `--each-at-least`, and no group is broken: where its tests fail without a
mutant, or end early, those of the other groups are judged all the same. All survivors stand in one list at the end,
each with file, line and change; `--survivors FILE` writes the list to a file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402  # found from wherever this is started

from tools.fuzz import code_hash  # noqa: E402
from tools.mutation import live  # noqa: E402
from tools.mutation.children import collected, environment, failed, forked, limit_own_time  # noqa: E402
from tools.mutation.groups import GROUPS, TIMED, Group  # noqa: E402
from tools.mutation.operators import Mutant, mutants_of  # noqa: E402

EQUIVALENT = ROOT / "tools" / "mutation" / "equivalent.toml"
SOURCES = ("algebra", "analysis", "contexts", "runtime", "tests", "tools")
#: A test takes at most so many times what it took without a mutant, and so many seconds more; of the process's own
#: time.
SLOWER, MORE = 10, 5
#: Seconds that a child may take at most, whatever it does: one that waits takes no time of its own.
WAITING = 300


@dataclass(slots=True)
class State:
    """What a run has found so far, of which code; what a resume file holds."""

    seed: int
    shard: str
    count: int
    code: str
    groups: list[str]
    results: dict[str, list[Any]] = field(default_factory=dict)

    def belongs_to(self, other: State) -> bool:
        mine, its = ((one.seed, one.shard, one.count, one.groups) for one in (self, other))
        return mine == its


@dataclass(frozen=True, slots=True)
class TestBaseline:
    """What a test did without a mutant: its own time, and the functions that it called."""

    seconds: float
    called: frozenset[str]


@cache
def all_mutants(group: Group, root: Path = ROOT) -> tuple[Mutant, ...]:
    return tuple(
        one for file in group.paths(root) for one in mutants_of(file, (root / file).read_text(encoding="utf-8"))
    )


def drawn(group: Group, count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """So many of a group, or all if they are fewer; a greater count begins with those of a smaller one.

    In the order of a digest of seed and key: a change of the code leaves the draw among what it does not touch as it
    was.
    """
    return some_of(all_mutants(group, root), count, str(seed))


def some_of(pool: Sequence[Mutant], count: int, seed: str) -> list[Mutant]:
    """So many of these, in the order of a digest of seed and key."""
    return sorted(pool, key=lambda one: sha256(f"{seed} {one.key}".encode()).digest())[:count]


def equivalents(file: Path = EQUIVALENT) -> dict[str, str]:
    """The reason by key of all mutants that mean the same as the original."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
    found = {entry["key"]: entry["why"] for entry in entries}
    if len(found) < len(entries):
        twice = [key for key, times in Counter(entry["key"] for entry in entries).items() if times > 1]
        raise ValueError(f"{file} has these more than once: {twice}")
    return found


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    groups = [group for group in GROUPS if not options.group or group.name in options.group]
    known = {one.key for group in GROUPS for one in all_mutants(group)}
    judged = equivalents()
    if stale := sorted(judged.keys() - known):
        print(f"{EQUIVALENT.name} lists mutants that there are no more: " + "\n  ".join(["", *stale]))
        return 2
    if unknown := sorted({*options.only} - known):
        print("no mutants of these names: " + "\n  ".join(["", *unknown]))
        return 2
    if options.child:
        return _run_group(groups[0], [*options.only], options)
    index, shards = (int(part) for part in options.shard.split("/"))
    state = resumed(
        options.resume,
        State(options.seed, options.shard, options.count, code_hash(ROOT, SOURCES), [group.name for group in groups]),
    )
    started = time.monotonic()
    chosen: dict[str, Mutant] = {}
    of: dict[str, str] = {}
    broken: list[str] = []
    for group, size in zip(groups, _shares(options.count, groups), strict=True):
        some = drawn(group, size, options.seed)
        if options.only:
            some = [one for one in all_mutants(group) if one.key in options.only]
        mine = some[index - 1 :: shards]
        chosen |= {one.key: one for one in mine}
        of |= {one.key: group.name for one in mine}
        left = [one.key for one in mine if one.key not in judged and one.key not in state.results]
        if options.list:
            print("\n".join(one.key for one in mine))
        elif left and not _in_process(group, left, options, state):
            broken.append(group.name)
    if options.list:
        return 0
    status = _told(chosen, of, judged, state, time.monotonic() - started, options)
    if broken:
        print(f"these groups broke, so not all of their mutants were judged: {', '.join(broken)}")
        return 2
    return status


def _shares(count: int, groups: Sequence[Group]) -> list[int]:
    """As many of each group; what a group has not, others have."""
    sizes = [len(all_mutants(group)) for group in groups]
    shares = [0] * len(groups)
    while (rest := min(count, sum(sizes)) - sum(shares)) > 0:
        open_ = [i for i, size in enumerate(sizes) if shares[i] < size]
        for number, i in enumerate(open_):
            shares[i] = min(sizes[i], shares[i] + rest // len(open_) + (number < rest % len(open_)))
    return shares


def _in_process(group: Group, keys: list[str], options: argparse.Namespace, state: State) -> bool:
    """Runs mutants of a group in a process of its own; whether its tests pass without one."""
    own = environment(ROOT, uncompiled=group.uncompiled)
    command = [sys.executable, __file__, "--child", "--group", group.name, "--seconds", str(options.seconds)]
    command += ["--tests", *(options.tests or [])] if options.tests else []
    with tempfile.TemporaryFile("w+") as errors:
        running = subprocess.Popen(
            [*command, "--only", *keys], cwd=ROOT, env=own, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                state.results[found["key"]] = [found["verdict"], found["by"], found["seconds"]]
                save(options.resume, state)
                if options.verbose:
                    print(f"{found['verdict']:9} {found['seconds']:6.1f} s  {found['key']}", flush=True)
            else:
                print(line, end="", flush=True)
        if running.wait() not in (0, 5):
            errors.seek(0)
            print(f"{group.name}: the run broke (exit status {running.returncode})\n{errors.read()[-3000:]}")
            return False
    return True


class Plugin:
    """Runs the collected tests once, then with each mutant, in children of this process."""

    def __init__(self, group: Group, keys: list[str], seconds: float) -> None:
        self.mutants = {one.key: one for one in all_mutants(group)}
        self.group, self.keys, self.seconds = group, keys, seconds
        self.broken = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        for file in self.group.paths(ROOT):  # some are imported where they are needed; children would not have them yet
            import_module(live.module_of(file))
        told = forked(lambda: self._without_mutant(items), None)
        if told is None or "broken" in told:
            detail = "it ended early" if told is None else told["broken"]
            print(f"{self.group.name}: the tests fail before there is any mutant: {detail}", flush=True)
            self.broken = True
            return True
        baseline = [TestBaseline(seconds, frozenset(called)) for seconds, called in told["tests"]]
        taken = sum(one.seconds for one in baseline)
        print(f"{self.group.name}: {len(items)} tests pass in {taken:.0f} s without a mutant", flush=True)
        for key in self.keys:
            print(json.dumps({"key": key, **self._with_mutant(self.mutants[key], items, baseline)}), flush=True)
        return True

    def _without_mutant(self, items: list[pytest.Item]) -> dict[str, Any]:
        called: set[str] = set()
        for file in self.group.paths(ROOT):
            live.watch(ROOT, file, called)
        tests, caches = [], live.caches()
        for item in items:
            # With a mutant caches are empty, and what fills them is called.
            for one in caches:
                one.cache_clear()
            called.clear()
            began = time.process_time()
            failure = failed(item)
            if failure is not None:
                return {"broken": f"{item.nodeid}\n{failure}"}
            tests.append((time.process_time() - began, sorted(called)))
        return {"tests": tests}

    def _with_mutant(self, mutant: Mutant, items: list[pytest.Item], baseline: list[TestBaseline]) -> dict[str, Any]:
        function = f"{mutant.file}::{mutant.function}"
        calling = sorted(
            (i for i, one in enumerate(baseline) if function in one.called),
            key=lambda i: baseline[i].seconds * len(baseline[i].called),
        )
        some: list[int] = []
        budget = 0.0
        for i in calling:
            if some and budget + baseline[i].seconds > self.seconds:
                continue
            some.append(i)
            budget += baseline[i].seconds
        if not some:
            return {"verdict": "survived", "by": "no test calls the function", "seconds": 0.0}

        def run() -> dict[str, Any]:
            live.put(ROOT, mutant)
            for i in some:
                limit_own_time(SLOWER * baseline[i].seconds + MORE)
                if failed(items[i]) is not None:
                    return {"verdict": "killed", "by": items[i].nodeid}
            left_out = f" of {len(calling)}" if len(some) < len(calling) else ""
            return {"verdict": "survived", "by": f"{len(some)}{left_out} tests pass"}

        began = time.monotonic()
        found = forked(run, WAITING)
        if found is None:
            found = {"verdict": "killed", "by": "the tests did not end"}
        elif "error" in found:
            found = {"verdict": "unfit", "by": found["error"]}
        return {**found, "seconds": round(time.monotonic() - began, 2)}


def _run_group(group: Group, keys: list[str], options: argparse.Namespace) -> int:
    plugin = Plugin(group, keys, options.seconds)
    tests = [*(f"--deselect={test}" for test in TIMED), *(options.tests or group.tests)]
    status = collected(tests, "not long and not spark", plugin)
    return 2 if plugin.broken else status


def _told(
    chosen: dict[str, Mutant],
    of: dict[str, str],
    judged: dict[str, str],
    state: State,
    seconds: float,
    options: argparse.Namespace,
) -> int:
    """Prints equivalent ones, the score of each group, in one list all survivors, and the score of all; the exit
    status. `of`: groups by key.
    """
    at_least, each = options.at_least, options.each_at_least
    same = [key for key in chosen if key in judged]
    found = {key: state.results[key] for key in chosen if key in state.results and key not in judged}
    by = Counter(verdict for verdict, _, _ in found.values())
    unfit, survived = (
        [key for key, (verdict, *_) in found.items() if verdict == what] for what in ("unfit", "survived")
    )
    for key in unfit:
        print(f"UNFIT {chosen[key]}\n  ({found[key][1]})")
    for key in same:
        print(f"equivalent {chosen[key]}\n  ({judged[key]})")
    below = []
    for group in dict.fromkeys(of.values()):
        verdicts = Counter(verdict for key, (verdict, *_) in found.items() if of[key] == group)
        some = verdicts["killed"] + verdicts["survived"]
        told = f"{100 * verdicts['killed'] / some:.1f} %" if some else "none"
        print(f"{group}: {verdicts['killed']} of {some} killed: {told}")
        if some and verdicts["killed"] / some < each:
            below.append(group)
    listed = [f"{chosen[key]}\n  ({found[key][1]})" for key in survived]
    for text in listed:
        print(f"SURVIVED {text}")
    if options.survivors is not None:
        options.survivors.parent.mkdir(parents=True, exist_ok=True)
        options.survivors.write_text("".join(f"{text}\n" for text in listed), encoding="utf-8")
    counted = len(found) - len(unfit)
    score = by["killed"] / counted if counted else 1.0
    print(
        f"{len(chosen)} mutants drawn (seed {state.seed}, shard {state.shard}), {len(same)} of them equivalent, "
        f"{len(unfit)} do not fit; {by['killed']} of {counted} killed: {100 * score:.1f} %, in {seconds:.0f} s"
        + (f"; {options.survivors} lists the {len(survived)} others" if survived and options.survivors else "")
    )
    if score < at_least:
        print(
            f"that is less than the {100 * at_least:g} % asked for: a survivor wants a test, or a reason in "
            f"{EQUIVALENT.name}"
        )
    if below:
        print(f"less than the {100 * each:g} % asked for of each group: {', '.join(below)}")
    return 1 if score < at_least or below else 0


def resumed(file: Path | None, fresh: State) -> State:
    """Where a run goes on: as its file says if that is of this code, else at the beginning."""
    if file is None or not file.exists():
        return fresh
    try:
        found = State(**json.loads(file.read_text(encoding="utf-8")))
    except TypeError:
        sys.exit(f"{file} is no file of this tool; remove it")
    if not found.belongs_to(fresh):
        sys.exit(
            f"{file} belongs to another run: seed {found.seed}, shard {found.shard}, {found.count} of {found.groups}"
        )
    if found.code != fresh.code:
        print(f"{file} is of other code ({found.code}, this is {fresh.code}): starting anew", flush=True)
        return fresh
    return found


def save(file: Path | None, state: State) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(state)), encoding="utf-8")
        temporary.replace(file)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", nargs="*", default=[], choices=[group.name for group in GROUPS], metavar="GROUP")
    parser.add_argument("--count", type=int, default=1000, help="mutants of all shards together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shard", default="1/1", help="i/k, from 1")
    parser.add_argument("--only", nargs="*", default=[], help="keys of mutants")
    parser.add_argument("--tests", nargs="*", help="instead of those of the group")
    parser.add_argument("--seconds", type=float, default=30, help="of tests without the mutant, that one may take")
    parser.add_argument("--at-least", type=float, default=0.0, help="share of mutants that have to be killed")
    parser.add_argument("--each-at-least", type=float, default=0.0, help="the same, of the mutants of each group")
    parser.add_argument("--resume", type=Path, help="file that remembers what was found")
    parser.add_argument("--survivors", type=Path, help="file for the list of all survivors")
    parser.add_argument("--list", action="store_true", help="print the keys of the mutants that would be drawn")
    parser.add_argument("--verbose", action="store_true", help="print each mutant as it is judged")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
