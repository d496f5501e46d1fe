"""Long random runs of the property tests: sharded, resumable, every failure printed as its smallest case.

    python tools/fuzz.py --family embedded --shard 1/4 --cases 30000 --seed 0 --resume out/fuzz-1.json

Case n of a run has seed `--seed + n`; shard i of k takes the n with n % k == i - 1. A resumed run goes on after the
last case that the file names, unless the source has changed since: then it starts anew and says so. Exit status 1 and
the shrunk case on the first failure, which the resume file also keeps; 4 where fewer than `--at-least` cases were
valid, or the optimiser of contexts changed fewer than `--optimised-at-least`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from tests.properties.directed_sequences import DirectedFamily
    from tests.properties.families import Family
    from tests.properties.large import LargeFamily
    from tests.properties.sequence_kernels import KernelFamily

#: What a case depends on: the library, and what draws and checks cases.
SOURCES = ("algebra", "analysis", "contexts", "runtime", "tests/strategies", "tests/properties")

FAMILIES = (
    *("rules", "staged", "embedded", "windows", "recursive", "recursive-embedded"),
    *("situations", "over", "asof", "versions", "ranks", "row-windows", "ticks", "sequences", "folding", "large"),
    *("sequence-kernels", "sequences-directed", "contexts", "contexts-above", "contexts-inside", "iseq", "iseq-begun"),
    *("counted", "composed", "iseq-derived"),
)


@dataclass(slots=True)
class State:
    """How far a run has come, of which code; what a resume file holds."""

    family: str
    shard: str
    seed: int
    code: str
    done: int = 0
    valid: int = 0
    optimised: int = 0
    failure: str | None = None

    def belongs_to(self, other: State) -> bool:
        return (self.family, self.shard, self.seed) == (other.family, other.shard, other.seed)


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    index, count = (int(part) for part in options.shard.split("/"))
    family = _family(options.family)
    resume = Path(options.resume) if options.resume else None
    state = resumed(resume, State(options.family, options.shard, options.seed, code_hash(ROOT)))
    before, tally = state.done, family.tally
    valid, changed = state.valid - tally.valid, state.optimised - tally.optimised
    numbers = [n for n in range(options.cases) if n % count == index - 1]
    started, saved = time.monotonic(), time.monotonic()
    for number in numbers[before:]:
        state.failure = family.run(options.seed + number)
        state.valid, state.optimised = valid + tally.valid, changed + tally.optimised
        now = time.monotonic()
        if state.failure:
            save(resume, state)
            print(f"case {options.seed + number} fails\n{state.failure}")
            return 1
        state.done += 1
        if now - saved > 10:
            save(resume, state)
            saved = now
        if options.minutes and now - started > options.minutes * 60:
            save(resume, state)
            print(f"stopped after {state.done} of {len(numbers)} cases; run again with the same --resume to go on")
            print(tally)
            return 3
    save(resume, state)
    name, taken = f"{options.family} shard {options.shard}", time.monotonic() - started
    of_them = f"{state.valid} of them valid" + f", {state.optimised} optimised" * (options.optimised_at_least > 0)
    print(f"{name}: {state.done} cases ({before} before), {of_them}, in {taken:.0f} s, none failed\n{tally}")
    if state.valid < options.at_least:
        print(f"{name}: fewer valid cases than the {options.at_least} asked for: give more --cases")
        return 4
    if state.optimised < options.optimised_at_least:
        print(f"{name}: the optimiser changed fewer cases than the {options.optimised_at_least} asked for")
        return 4
    return 0


def _family(name: str) -> Family | LargeFamily | KernelFamily | DirectedFamily:
    if name == "large":
        from tests.properties.large import LARGE

        return LARGE
    if name == "sequence-kernels":
        from tests.properties.sequence_kernels import KERNELS

        return KERNELS
    if name == "sequences-directed":
        from tests.properties.directed_sequences import DIRECTED

        return DIRECTED
    from tests.properties.families import FAMILIES

    return FAMILIES[name]


def code_hash(root: Path, folders: Iterable[str] = SOURCES) -> str:
    """A digest of the names and texts of all Python files in the folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16]


def resumed(resume: Path | None, fresh: State) -> State:
    """Where a run goes on: as its file says if that is of this code, else at the beginning."""
    if resume is None or not resume.exists():
        return fresh
    try:
        found = State(**json.loads(resume.read_text()))
    except TypeError:
        sys.exit(f"{resume} is no file of this tool; remove it")
    if not found.belongs_to(fresh):
        sys.exit(f"{resume} belongs to another run: {found}")
    if found.code != fresh.code:
        print(f"{resume} is of other code ({found.code}, this is {fresh.code}): starting anew", flush=True)
        return fresh
    return found


def save(resume: Path | None, state: State) -> None:
    if resume is None:
        return
    resume.parent.mkdir(parents=True, exist_ok=True)
    temporary = resume.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(state)))
    temporary.replace(resume)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, default="embedded")
    parser.add_argument("--shard", default="1/1", help="i/k, from 1")
    parser.add_argument("--cases", type=int, default=30_000, help="seeds; about 7 of 10 give a valid program")
    parser.add_argument("--at-least", type=int, default=0, help="how many cases of this shard have to be valid")
    parser.add_argument(
        "--optimised-at-least", type=int, default=0, help="how many of them the optimiser of contexts has to change"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", help="file that remembers how far the run has come")
    parser.add_argument("--minutes", type=float, help="stop after this long (exit status 3)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
