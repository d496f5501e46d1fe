"""Long random runs of the property tests: sharded, resumable, every failure printed as its smallest case.

    python tools/fuzz.py --family embedded --shard 1/4 --cases 30000 --seed 0 --resume out/fuzz-1.json

Case n of a run has seed `--seed + n`; shard i of k takes the n with n % k == i - 1. A resumed run goes on after the last
case that the file names. Exit status 1 and the shrunk case on the first failure, which the resume file also keeps.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> int:
    options = _options()
    index, count = (int(part) for part in options.shard.split("/"))
    check = _family(options.family)
    resume = Path(options.resume) if options.resume else None
    done = _resumed(resume, options)
    numbers = [n for n in range(options.cases) if n % count == index - 1][done:]
    started, saved = time.monotonic(), time.monotonic()
    for at, number in enumerate(numbers, start=done + 1):
        failure = check(options.seed + number)
        now = time.monotonic()
        if failure or now - saved > 10 or at == done + len(numbers):
            _save(resume, options, at if failure is None else at - 1, failure)
            saved = now
        if failure:
            print(f"case {options.seed + number} fails\n{failure}")
            return 1
        if options.minutes and now - started > options.minutes * 60:
            _save(resume, options, at, None)
            print(f"stopped after {at} of {done + len(numbers)} cases; run again with the same --resume to go on")
            print(_summary(options.family))
            return 3
    print(
        f"{options.family} shard {options.shard}: {len(numbers)} cases ({done} before) in {time.monotonic() - started:.0f} s, none failed"
    )
    print(_summary(options.family))
    return 0


def _family(name: str) -> Callable[[int], str | None]:
    from tests.properties import families

    return families.FAMILIES[name].run


def _summary(name: str) -> str:
    from tests.properties import families

    return str(families.FAMILIES[name].tally)


def _resumed(resume: Path | None, options: argparse.Namespace) -> int:
    if resume is None or not resume.exists():
        return 0
    state = json.loads(resume.read_text())
    mine = {"family": options.family, "shard": options.shard, "seed": options.seed}
    if any(state[key] != value for key, value in mine.items()):
        sys.exit(f"{resume} belongs to another run: {state}")
    return int(state["done"])


def _save(resume: Path | None, options: argparse.Namespace, done: int, failure: str | None) -> None:
    if resume is None:
        return
    resume.parent.mkdir(parents=True, exist_ok=True)
    state = {"family": options.family, "shard": options.shard, "seed": options.seed, "done": done, "failure": failure}
    temporary = resume.with_suffix(".tmp")
    temporary.write_text(json.dumps(state))
    temporary.replace(resume)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=("rules", "staged", "embedded", "windows"), default="embedded")
    parser.add_argument("--shard", default="1/1", help="i/k, from 1")
    parser.add_argument("--cases", type=int, default=30_000, help="seeds; about 7 of 10 give a valid program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", help="file that remembers how far the run has come")
    parser.add_argument("--minutes", type=float, help="stop after this long (exit status 3)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
