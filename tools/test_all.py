"""Every check there is, part by part, as `make test-all` runs them: one command, whose last lines say what each part
found.

    python tools/test_all.py [--resume out/test-all.json] [--gigabytes 2.2] [--only PART ...]

A part is commands that run beside each other, and passes if all of them do. Random cases are others for each state of
the code: what one state has passed is new to no later one. One that fails keeps none of the others from running.
`--resume FILE` keeps what parts of this code have passed, and leaves them out when it is started again: the whole
takes hours. What commands print goes to files beside it. Exit status 0 if every part has passed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.fuzz import code_hash  # noqa: E402  # found from wherever this is started

Commands = Sequence[Sequence[str]]
SOURCES = ("algebra", "analysis", "contexts", "runtime", "tidegate", "tests", "tools", "benchmarks", "examples")
LONG = ("-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--durations", "25", "-m", "long")
#: The folders of most long tests, each a part of its own.
PLACES = {"faults": "tests/runtime/faults", "properties": "tests/properties", "the runtime": "tests/runtime"}

#: The groups of drawn mutants of each of two processes.
HALVES = (
    (
        "garbage",
        "grouping",
        "analysis",
        "look-ups",
        "folding",
        "over",
        "ranks",
        "windows",
        "compaction",
        "quarantine",
        "sequences",
        "derive",
        "transitions",
    ),
    (
        "commit",
        "joins",
        "kernels",
        "kernels of rows",
        "rewriting",
        "as-of joins",
        "ticks",
        "operators' state",
        "store",
        "files",
        "kernels of sequences",
        "kernels of paths",
        "match",
        "process",
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a part has come to. `said`: the last line that each of its commands printed."""

    passed: bool
    minutes: float
    said: list[str]


def parts(folder: Path, gigabytes: float, seed: int) -> dict[str, Commands]:
    """All parts by name, quick ones first; tools keep what they have done in the folder. `seed` is of random cases, and
    stands in the names of what they keep: what another state of the code has drawn is nothing to go on with.
    """

    def keeping(name: str) -> list[str]:
        return ["--resume", str(folder / f"{name}-{seed}.json")]

    def random(name: str, family: str, cases: int, at_least: int, optimised: int = 0) -> Commands:
        drawn = ["--family", family, "--cases", str(cases), "--at-least", str(at_least), "--seed", str(seed)]
        drawn += ["--optimised-at-least", str(optimised)] if optimised else []
        return [["tools/fuzz.py", *drawn, "--shard", f"{n}/2", *keeping(f"{name}-{n}")] for n in (1, 2)]

    def mutants(number: int, *groups: str) -> Sequence[str]:
        """40 of each group; of each, and more of all, most have to be killed. Their tests run once without a mutant, in
        both halves about as long.
        """
        drawn = ["--group", *groups, "--count", str(40 * len(groups)), "--seed", str(seed), "--at-least", "0.85"]
        drawn += ["--each-at-least", "0.7", "--survivors", str(folder / f"survivors-{number}.txt")]
        return ["tools/mutants.py", *drawn, *keeping(f"mutants-{number}")]

    python: dict[str, Commands] = {
        "long tests of faults": [[*LONG, PLACES["faults"]]],
        "long tests of the runtime": [[*LONG, PLACES["the runtime"], "--ignore", PLACES["faults"]]],
        "long tests of properties": [[*LONG, PLACES["properties"]]],
        "other long tests": [[*LONG, "tests", *(f"--ignore={place}" for place in PLACES.values())]],
        "random kills": [["tools/kill_loop.py"]],
        # Seven programs of ten are valid, and eight of ten with situations; the shards answer for their halves.
        "random programs": random("fuzz", "embedded", 12_000, 3_800),
        "random situations": random("fuzz-situations", "situations", 4_000, 1_400),
        "random rows around rows": random("fuzz-over", "over", 1_000, 350),
        "random as-of joins": random("fuzz-asof", "asof", 1_000, 250),
        # Of ten programs with contexts the optimiser changes six, eight and five.
        "random contexts": random("fuzz-contexts", "contexts", 4_000, 1_950, 1_200),
        "random contexts above others": random("fuzz-contexts-above", "contexts-above", 4_000, 1_950, 1_600),
        "random operators in contexts": random("fuzz-contexts-inside", "contexts-inside", 3_000, 1_400, 680),
        "random versions": random("fuzz-versions", "versions", 1_000, 350),
        "random ranks": random("fuzz-ranks", "ranks", 1_000, 350),
        "random windows": random("fuzz-windows", "row-windows", 1_000, 350),
        "random ticks": random("fuzz-ticks", "ticks", 1_000, 350),
        "random compositions": random("fuzz-composed", "composed", 1_000, 350),
        "random counts of matches": random("fuzz-counted", "counted", 1_000, 350),
        "random interval sequences": random("fuzz-iseq", "iseq", 16_000, 5_000),
        "random beginnings of intervals": random("fuzz-iseq-begun", "iseq-begun", 1_000, 300),
        "random intervals beside derived ones": random("fuzz-iseq-derived", "iseq-derived", 2_000, 300),
        "random recursions": random("fuzz-recursive", "recursive-embedded", 1_000, 350),
        "random folding": random("fuzz-folding", "folding", 1_000, 250),
        "random sequences": random("fuzz-sequences", "sequences", 4_000, 1_800),
        "random long continuations": random("fuzz-sequences-directed", "sequences-directed", 10_000, 2_500),
        "random row patterns": random("fuzz-sequence-kernels", "sequence-kernels", 25_000, 10_000),
        "random programs of many rows": random("fuzz-large", "large", 400, 150),
        "planted bugs": [["tools/planted_bugs.py", "--resume", str(folder / "planted.json")]],
        "drawn mutants": [mutants(number, *groups) for number, groups in enumerate(HALVES, start=1)],
        "an increment of gigabytes": [["benchmarks/large.py", "--gigabytes", str(gigabytes)]],
    }
    return {
        "make test": [["make", "test"]],
        **{name: [[sys.executable, *command] for command in commands] for name, commands in python.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts that have not passed yet, prints each with its time, and says at the end which have failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resume", type=Path, default=Path("out/test-all.json"), metavar="FILE")
    parser.add_argument("--gigabytes", type=float, default=2.2, help="of the one increment that is run on Spark")
    parser.add_argument("--only", nargs="+", metavar="PART")
    options = parser.parse_args(arguments)
    known = parts(options.resume.parent.absolute(), options.gigabytes, seed_of(code_hash(ROOT, SOURCES)))
    if unknown := [name for name in options.only or () if name not in known]:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(known)}")
    return run({name: known[name] for name in options.only or known}, options.resume)


def run(wanted: Mapping[str, Commands], resume: Path) -> int:
    """Exit status 0 if all of these parts have passed, now or before, with the code as it is."""
    code = code_hash(ROOT, SOURCES)
    found = _passed(resume, code)
    resume.parent.mkdir(parents=True, exist_ok=True)
    for name, commands in wanted.items():
        if name not in found:
            print(f"{time.strftime('%H:%M')} {name} ...", flush=True)
            found[name] = _run(commands, resume.with_name(f"{resume.stem}-{name.replace(' ', '-')}"))
            kept = {"code": code, "parts": {part: asdict(result) for part, result in found.items() if result.passed}}
            temporary = resume.with_suffix(".part")
            temporary.write_text(json.dumps(kept, indent=1), encoding="utf-8")
            temporary.replace(resume)
        print(_line(name, found[name]), flush=True)
    if code_hash(ROOT, SOURCES) != code:
        print("the code has changed meanwhile: the parts are not of one state")
        return 1
    failed = [name for name in wanted if not found[name].passed]
    print(f"\nof the code {code}:", *(_line(name, found[name]) for name in wanted), sep="\n")
    print(f"failed: {', '.join(failed)}" if failed else "all parts passed")
    return 1 if failed else 0


def seed_of(code: str) -> int:
    """Where random cases begin, for a digest of the code: runs of two states have hardly any in common."""
    return int(code, 16) % 1_000_000 * 100_000


def _passed(resume: Path, code: str) -> dict[str, Result]:
    """The parts that passed before with the same code."""
    if not resume.exists():
        return {}
    kept = json.loads(resume.read_text(encoding="utf-8"))
    if kept["code"] != code:
        print(f"{resume} is of other code ({kept['code']}, this is {code}): starting anew", flush=True)
        return {}
    return {name: Result(**result) for name, result in kept["parts"].items()}


def _run(commands: Commands, place: Path) -> Result:
    start = time.monotonic()
    logs = [Path(f"{place}-{n}.log") for n in range(1, len(commands) + 1)]
    running = []
    for command, log in zip(commands, logs, strict=True):
        with log.open("wb") as output:
            running.append(subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT))
    passed = [process.wait() == 0 for process in running]
    minutes = (time.monotonic() - start) / 60
    said = [_last(log) if ok else f"{_last(log)}, see {log}" for ok, log in zip(passed, logs, strict=True)]
    return Result(all(passed), minutes, said)


def _last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing printed")


def _line(name: str, result: Result) -> str:
    return f"{'passed' if result.passed else 'FAILED'}  {name:30} {result.minutes:6.1f} min  {'; '.join(result.said)}"


if __name__ == "__main__":
    sys.exit(main())
