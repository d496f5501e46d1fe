"""Arrival scripts: how the complete rows of a case come in, batch by batch, with progress that makes none of them late.

A row is late iff `row.x <= b_x` for any progressing x, b being the progress before the row's batch. Scripts report
progress as tight as that allows most of the time, attribute by attribute, and now and then lag or stay silent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tests.strategies.programs import Case, Row, show_row
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended

Progress = Mapping[str, Extended]


@dataclass(frozen=True, slots=True)
class Step:
    """One batch: new rows per stream, and progress per stream and attribute that holds after them."""

    rows: Mapping[str, tuple[Row, ...]]
    progress: Mapping[str, Progress]

    def __str__(self) -> str:
        parts = [f"{name} {show_row(row)}" for name, rows in self.rows.items() for row in rows]
        parts += [f"{name}.{a} <= {b}" for name, progress in self.progress.items() for a, b in progress.items()]
        return "; ".join(parts) or "nothing"


Script = tuple[Step, ...]
Manner = Literal["tight", "lagging", "silent"]


def show_script(script: Script) -> str:
    return "\n".join(f"  step {i}: {step}" for i, step in enumerate(script))


def random_script(case: Case, seed: int) -> Script:
    """A permitted way for the case's rows to arrive; the last step ends every input."""
    rng = random.Random(f"{seed}/{case.seed}")
    arrivals = _merged(case, rng)
    batches = _batches(arrivals, rng)
    manners: dict[tuple[str, str], Manner] = {
        (stream.name, name): rng.choices(("tight", "lagging", "silent"), (8, 2, 1))[0]
        for stream in case.streams
        for name in stream.progress
    }
    remaining = {stream.name: list(case.rows[stream.name]) for stream in case.streams}
    known: dict[tuple[str, str], Extended] = dict.fromkeys(manners, -INF)
    steps: list[Step] = []
    for batch in batches:
        rows: dict[str, list[Row]] = {}
        for name, row in batch:
            rows.setdefault(name, []).append(row)
            remaining[name].remove(row)
        progress: dict[str, dict[str, Extended]] = {}
        for stream in case.streams:
            for name in stream.progress:
                key = (stream.name, name)
                reached = _reached(stream, name, case, remaining[stream.name], manners[key], rng)
                if reached is not None and reached > known[key]:
                    known[key] = reached
                    progress.setdefault(stream.name, {})[name] = reached
        steps.append(Step({name: tuple(found) for name, found in rows.items()}, progress))
    ended = {s.name: dict.fromkeys(s.progress, INF) for s in case.streams}
    if rng.random() < 0.25:
        # The inputs end one after the other.
        order = list(ended)
        rng.shuffle(order)
        return (*steps, *(Step({}, {name: ended[name]}) for name in order))
    return (*steps, Step({}, ended))


def _merged(case: Case, rng: random.Random) -> list[tuple[str, Row]]:
    """All rows in an order of arrival: each stream roughly by one of its attributes, ties shuffled."""
    queues: dict[str, list[tuple[float, Row]]] = {}
    unit = 1 if all(_values(case) and abs(v) < 10**9 for v in _values(case)) else 10**6
    for stream in case.streams:
        by = rng.choice(stream.progress)
        jitter = rng.choice((0, 0, 0, 2, 5)) * unit
        rows = list(case.rows[stream.name])
        rng.shuffle(rows)
        keyed = [(_instant(row, by) + rng.uniform(0, jitter), row) for row in rows]
        if rng.random() < 0.92:
            keyed.sort(key=lambda pair: pair[0])
        queues[stream.name] = keyed
    style = rng.random()
    merged: list[tuple[str, Row]] = []
    if style < 0.35:
        names = list(queues)
        rng.shuffle(names)
        return [(name, row) for name in names for _, row in queues[name]]
    while any(queues.values()):
        open_ = [name for name in queues if queues[name]]
        name = min(open_, key=lambda n: queues[n][0][0]) if style < 0.7 else rng.choice(open_)
        merged.append((name, queues[name].pop(0)[1]))
    return merged


def _batches(arrivals: list[tuple[str, Row]], rng: random.Random) -> list[list[tuple[str, Row]]]:
    style = rng.random()
    sizes = (
        (1,)
        if style < 0.45
        else (0, 1, 1, 2, 3)
        if style < 0.85
        else (2, 4, 6)
        if style < 0.93
        else (len(arrivals) or 1,)
    )
    batches: list[list[tuple[str, Row]]] = [[] for _ in range(rng.choice((0, 0, 1)))]
    position = 0
    while position < len(arrivals):
        size = rng.choice(sizes)
        batches.append(arrivals[position : position + size])
        position += size
    return batches


def _reached(
    stream: StreamDef, name: str, case: Case, remaining: list[Row], manner: Manner, rng: random.Random
) -> Extended | None:
    if manner == "silent" or rng.random() < 0.12:
        return None
    if remaining:
        limit = min(_instant(row, name) for row in remaining) - 1
        return limit if manner == "tight" else limit - rng.choice((0, 1, 2, 5))
    seen = [_instant(row, name) for row in case.rows[stream.name]] or [0]
    others = _values(case) or [0]
    style = rng.random()
    if style < 0.35:
        return INF
    if style < 0.7:
        return max(seen) + rng.choice((-1, 0, 0, 1))
    return rng.choice(others) + rng.choice((-1, 0, 1))


def _values(case: Case) -> list[int]:
    return [
        value
        for stream in case.streams
        for row in case.rows[stream.name]
        for name in stream.schema.temporal
        if isinstance(value := row[name], int)
    ]


def _instant(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


# -- smaller failing cases --------------------------------------------------------------------------------------------


def shrink(case: Case, script: Script, fails: Callable[[Case, Script], bool]) -> tuple[Case, Script]:
    """A smaller case that still fails: fewer rows, fewer steps, less progress."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case, script):
            if fails(*smaller):
                case, script = smaller
                changed = True
                break
    return case, script


def _smaller(case: Case, script: Script) -> list[tuple[Case, Script]]:
    found: list[tuple[Case, Script]] = []
    for i, step in enumerate(script):
        for name, rows in step.rows.items():
            for j, row in enumerate(rows):
                left = list(case.rows[name])
                left.remove(row)
                fewer = Step({**step.rows, name: rows[:j] + rows[j + 1 :]}, step.progress)
                found.append((case.with_rows({**case.rows, name: tuple(left)}), (*script[:i], fewer, *script[i + 1 :])))
    for stream in case.statics:
        rows = case.rows[stream.name]
        found += [
            (case.with_rows({**case.rows, stream.name: rows[:j] + rows[j + 1 :]}), script) for j in range(len(rows))
        ]
    for i, step in enumerate(script[:-1]):
        if not step.progress and not any(step.rows.values()):
            found.append((case, script[:i] + script[i + 1 :]))
        for name, progress in step.progress.items():
            for attribute in progress:
                less = {a: b for a, b in progress.items() if a != attribute}
                other = {n: p for n, p in step.progress.items() if n != name} | ({name: less} if less else {})
                found.append((case, (*script[:i], replace(step, progress=other), *script[i + 1 :])))
    for i in range(len(script) - 2):
        one, two = script[i], script[i + 1]
        joined = {n: (*one.rows.get(n, ()), *two.rows.get(n, ())) for n in {**one.rows, **two.rows}}
        reached = {n: {**one.progress.get(n, {}), **two.progress.get(n, {})} for n in {**one.progress, **two.progress}}
        found.append((case, (*script[:i], Step(joined, reached), *script[i + 2 :])))
    return found
