"""Increments by hand: the rules of the analysis applied to rows in plain Python, no engine involved.

Every occurrence has a buffer of its own and is evaluated from it alone, so that a keep or relevance that is wrong for
one occurrence cannot be hidden by another that keeps the same row.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.properties.purging import needed
from tests.strategies.programs import Case
from tests.strategies.streams import Script
from tidegate.algebra.evaluation import evaluate_term, key_of
from tidegate.algebra.nodes import Node, Scan, children, with_children
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.semantics import Row, evaluate, evaluate_program
from tidegate.algebra.terms import Value
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import OccurrenceFacts, ProgramFacts, QueryFacts, Recursion
from tidegate.analysis.progress.pass_ import passes
from tidegate.analysis.purge import purge
from tidegate.analysis.recursion import component_progress
from tidegate.analysis.state.bounds import Bounded

Key = tuple[Value | tuple[str], ...]
Progress = Mapping[tuple[str, str], Extended]


class Broken(AssertionError):
    """A rule of the analysis was contradicted by rows."""


@dataclass(slots=True)
class Tally:
    """What a run of cases went through: shows that the checks met something to check."""

    cases: int = 0
    valid: int = 0
    runs: int = 0
    increments: int = 0
    results: int = 0
    with_results: int = 0
    collected: int = 0
    irrelevant: int = 0
    freed: int = 0
    bounded: int = 0
    attained: int = 0
    strata: int = 0
    lagged: int = 0
    unfinished: int = 0
    joined: int = 0
    folded: int = 0
    optimised: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Run:
    """A query while it runs: its progress, the buffers of its occurrences, and what it has emitted."""

    facts: QueryFacts
    node: Node
    complete: list[Row]
    progress: dict[str, Extended]
    buffers: list[list[Row]]
    fresh: list[Row] = field(default_factory=list)
    emitted: list[Row] = field(default_factory=list)
    evaluated: bool = False

    def instants(self, row: Row) -> dict[str, int]:
        return instants_of(self.facts.output, row)


def by_occurrence(node: Node) -> Node:
    """The expression with every reference to a stream reading a relation of its own, `#i` for occurrence i."""
    count = 0

    def rebuild(current: Node) -> Node:
        nonlocal count
        if isinstance(current, Scan):
            count += 1
            s = current.stream
            return Scan(StreamDef(f"#{count - 1}", s.schema, s.relations, s.progress, s.static))
        return with_children(current, tuple(rebuild(child) for child in children(current)))

    return rebuild(node)


def as_tuples(case: Case) -> dict[str, list[Row]]:
    """The case's complete input relations as `semantics` wants them."""
    return {s.name: [_as_tuple(s, row) for row in case.rows.get(s.name, ())] for s in case.program.inputs}


def check_rules(
    case: Case,
    script: Script,
    facts: ProgramFacts,
    tally: Tally,
    *,
    lean: bool,
    purging: bool = False,
    lagging: bool = False,
) -> None:
    """Runs the script by the rules alone; `Broken` as soon as they and the complete evaluation disagree.

    After every step each query must have emitted exactly the rows of the complete result that lie at or below its
    progress on some promised attribute: nothing early, late, twice or missing, and nothing is ever taken back.
    `lean`: rows are also collected by keep and left out of increments by relevance; `purging`: and freed by partner and
    kill rule. `lagging`: but in the last step queries come in any order and progress less than they could, or not at
    all.
    """
    inputs = as_tuples(case)
    complete: dict[str, list[Row]] = {
        **inputs, **evaluate_program(facts.program, inputs), **evaluate_program(case.program, inputs)
    }  # fmt: skip
    rng = random.Random(case.seed)
    definitions = {**{s.name: s for s in case.program.inputs}, **facts.streams}
    b: dict[tuple[str, str], Extended] = {(s.name, a): -INF for s in definitions.values() for a in s.progress}
    runs = [_begun(query, complete) for query in facts.queries]
    for run in runs:
        _check_relations(run)
        idle = [a for a, f in run.facts.propagation.items() if f.evaluate(dict.fromkeys(b, 0)) == -INF]
        if idle:
            raise Broken(f"{run.facts.query.name} promises progress on {idle}, which never comes")
    freeing = [
        (run, rules)
        for run in runs
        if purging and run.facts.query.stream not in facts.recursions and (rules := purge(run.facts)) is not None
    ]
    arrived: dict[str, list[Row]] = {s.name: [] for s in definitions.values()}
    tally.runs += 1
    for number, step in enumerate(script):
        new_rows = {name: [_as_tuple(definitions[name], row) for row in rows] for name, rows in step.rows.items()}
        for name, progress in step.progress.items():
            b |= {(name, a): reached for a, reached in progress.items()}
        free = rng if lagging and number < len(script) - 1 else None
        order = list(facts.components)
        if free is not None:
            free.shuffle(order)
        for place, component in enumerate(order):
            own = [run for run in runs if run.facts.query.stream in component.streams]
            recursion = facts.recursions.get(component.streams[0])
            if recursion is not None and free is not None and free.random() < 0.5:
                for run in own:
                    _stay(run, new_rows, f"{component.streams} at step {number}", lean=lean)
            elif recursion is not None:
                where = f"{component.streams} at step {number}"
                _recurse(own, recursion, new_rows, b, rng, tally, where, lean=lean, free=free)
            else:
                for run in own:
                    where = f"{run.facts.query.name} at step {number}"
                    _advance(run, new_rows, b, rng, tally, where, lean=lean, free=free)
            for stream in component.streams:
                feeding = [run for run in own if run.facts.query.stream == stream]
                new_rows[stream] = [row for run in feeding for row in run.fresh]
                for run in runs:
                    if any(run.facts.query.stream in earlier.streams for earlier in order[:place]):
                        _receive(run, {stream: new_rows[stream]}, f"{stream} at step {number}", lean=lean)
                for a in facts.streams[stream].progress:
                    b[stream, a] = min(run.progress[a] for run in feeding)
        for name, rows in new_rows.items():
            arrived[name] += rows
        for run, rules in freeing:
            left = needed(rules, run.buffers, run.progress, b)
            tally.freed += sum(map(len, run.buffers)) - sum(map(len, left))
            run.buffers = left
        if lean:
            for run in runs:
                _check_bounds(run, b, arrived, tally, f"{run.facts.query.name} at step {number}")
    tally.results += sum(len(run.emitted) for run in runs)
    tally.with_results += any(run.emitted for run in runs)


def _begun(query: QueryFacts, complete: Mapping[str, list[Row]]) -> _Run:
    buffers = [list(complete[o.stream.name]) if o.stream.static else [] for o in query.occurrences]
    return _Run(
        query,
        by_occurrence(query.query.node),
        evaluate(query.query.node, complete),
        dict.fromkeys(query.propagation, -INF),
        buffers,
    )


def _check_relations(run: _Run) -> None:
    output = run.facts.output
    for row in run.complete:
        values = dict(zip(output.schema.names, row, strict=True))
        if evaluate_term(output.relations, values, output.schema) is not True:
            raise Broken(f"{run.facts.query.name}: the relations of {output.name} do not hold for {row}")


def _advance(
    run: _Run,
    new_rows: Mapping[str, list[Row]],
    b: Progress,
    rng: random.Random,
    tally: Tally,
    where: str,
    *,
    lean: bool,
    free: random.Random | None,
) -> None:
    query = run.facts
    old = run.progress
    new = allowed = query.progress(b, old)
    if free is not None:
        new = lagged(old, allowed, free)
        tally.lagged += new != allowed
    _receive(run, new_rows, where, lean=lean)
    run.fresh = []
    if new != old or (query.is_static and not run.evaluated):
        run.evaluated = True
        run.fresh = _increment(run, old, new, tally, where, lean=lean)
        run.emitted += run.fresh
        run.progress = new
        if lean:
            _collect(run, rng, tally, where)
    wanted = [row for row in run.complete if final(run.instants(row), new)]
    compare(run.emitted, wanted, where)


def _stay(run: _Run, new_rows: Mapping[str, list[Row]], where: str, *, lean: bool) -> None:
    _receive(run, new_rows, where, lean=lean)
    run.fresh = []


def lagged(old: Mapping[str, Extended], allowed: Mapping[str, Extended], rng: random.Random) -> dict[str, Extended]:
    """Any progress that R24 lets a query choose: as it was, as far as it may, or in between on each attribute by
    itself.
    """
    style = rng.random()
    if style < 0.35:
        return dict(old)
    return dict(allowed) if style < 0.55 else {a: _between(old[a], p, rng) for a, p in allowed.items()}


def _between(low: Extended, high: Extended, rng: random.Random) -> Extended:
    near = [
        p
        for end, steps in ((low, (0, 1, 2)), (high, (0, -1, -2, -5)))
        for step in steps
        if low <= (p := end + step) <= high
    ]
    if isinstance(low, int) and isinstance(high, int):
        near.append(rng.randint(low, high))
    return rng.choice(near)


def _receive(run: _Run, new_rows: Mapping[str, list[Row]], where: str, *, lean: bool) -> None:
    for o in run.facts.occurrences:
        fresh = new_rows.get(o.stream.name, [])
        if lean and not o.stream.static:
            fresh = [row for row in fresh if _kept(o, row, run.progress, where)]
        run.buffers[o.index] += fresh


def _increment(
    run: _Run, old: Mapping[str, Extended], new: Mapping[str, Extended], tally: Tally, where: str, *, lean: bool
) -> list[Row]:
    """The rows that pass from `old` to `new`."""
    tally.increments += 1
    relations = {
        f"#{o.index}": _relevant(run, o, old, new, tally, where) if lean else run.buffers[o.index]
        for o in run.facts.occurrences
    }
    found = evaluate(run.node, relations)
    _check_pass_condition(run, found, old, new, where)
    return [row for row in found if passes(run.instants(row), old, new)]


def _recurse(
    runs: Sequence[_Run],
    recursion: Recursion,
    new_rows: Mapping[str, list[Row]],
    b: Progress,
    rng: random.Random,
    tally: Tally,
    where: str,
    *,
    lean: bool,
    free: random.Random | None,
) -> None:
    """A recursive component: of the rows that would pass those of the least ranks, again and again (rule R20). With
    `free` it stops after some of these, where each stream promises one instant, and progress is less (rule R24).
    """
    rank, limit = recursion.rank, None
    reached = component_progress(recursion, b)
    new = {
        run.facts.query.name: {a: max(p, reached[run.facts.query.name][a]) for a, p in run.progress.items()}
        for run in runs
    }
    for run in runs:
        run.fresh = []
        _receive(run, new_rows, where, lean=lean)
    most, strata = INF, 0
    if free is not None and free.random() < 0.7 and all(len(p) == 1 and INF not in p.values() for p in new.values()):
        most = free.choice((1, 2, 3))
    while True:
        candidates: list[tuple[_Run, int, Row]] = []
        for run in runs:
            stream, old = run.facts.query.stream, dict(run.progress)
            if limit is not None:
                old = {a: max(old[a], instant) for a, instant in rank.below(stream, limit).items()}
            found = _increment(run, old, new[run.facts.query.name], tally, where, lean=lean)
            candidates += [(run, rank.of(stream, run.instants(row)), row) for row in found]
        if not candidates:
            break
        limit = min(r for _, r, _ in candidates) + rank.step
        passed: dict[str, list[Row]] = {run.facts.query.stream: [] for run in runs}
        for run, r, row in candidates:
            if r < limit:
                run.fresh.append(row)
                passed[run.facts.query.stream].append(row)
        tally.strata += 1
        strata += 1
        for run in runs:
            _receive(run, passed, where, lean=lean)
        if strata >= most:
            tally.unfinished += 1
            for run in runs:
                below, name = rank.below(run.facts.query.stream, limit), run.facts.query.name
                new[name] = {a: max(run.progress[a], min(p, below[a])) for a, p in new[name].items()}
            break
    for run in runs:
        run.emitted += run.fresh
        run.progress = new[run.facts.query.name]
        if lean:
            _collect(run, rng, tally, where)
        wanted = [row for row in run.complete if final(run.instants(row), run.progress)]
        compare(run.emitted, wanted, f"{run.facts.query.name} of {where}")


def _check_pass_condition(
    run: _Run, found: Sequence[Row], old: Mapping[str, Extended], new: Mapping[str, Extended], where: str
) -> None:
    schema = run.facts.output.schema
    condition = run.facts.passes(old, new)
    for row in found:
        by_condition = evaluate_term(condition, dict(zip(schema.names, row, strict=True)), schema)
        if by_condition is not passes(run.instants(row), old, new):
            raise Broken(f"{where}: the pass condition says {by_condition} for {row}, the rule otherwise")


def _kept(o: OccurrenceFacts, row: Row, p: Mapping[str, Extended], where: str) -> bool:
    """Keep by the rule, after checking that the condition and a segment of this row alone say the same."""
    instants = instants_of(o.stream, row)
    kept = o.keep.row(instants, p)
    values = dict(zip(o.stream.schema.names, row, strict=True))
    if evaluate_term(o.keep.condition(p), values, o.stream.schema) is not kept:
        raise Broken(f"{where}: keep of {o.stream.name}#{o.index} is {kept} for {row} at {p}, its condition not")
    if o.keep.segment(_bounds([instants]), p) is not kept:
        raise Broken(f"{where}: keep of {o.stream.name}#{o.index} is {kept} for {row} at {p}, for its segment not")
    return kept


def _collect(run: _Run, rng: random.Random, tally: Tally, where: str) -> None:
    for o in run.facts.occurrences:
        if o.stream.static:
            continue
        rows = run.buffers[o.index]
        kept = [_kept(o, row, run.progress, where) for row in rows]
        for chosen in _segments(len(rows), rng):
            bounds = _bounds([instants_of(o.stream, rows[i]) for i in chosen])
            if any(kept[i] for i in chosen) and not o.keep.segment(bounds, run.progress):
                raise Broken(f"{where}: a segment of {o.stream.name}#{o.index} goes with a row that stays")
        run.buffers[o.index] = [row for row, stays in zip(rows, kept, strict=True) if stays]
        tally.collected += len(rows) - len(run.buffers[o.index])


def _relevant(
    run: _Run, o: OccurrenceFacts, old: Mapping[str, Extended], new: Mapping[str, Extended], tally: Tally, where: str
) -> list[Row]:
    """The rows of an occurrence that matter to this increment; conditions and segments are checked on the way."""
    if o.stream.static:
        return run.buffers[o.index]
    condition = o.relevance.condition(old, new)
    found: list[Row] = []
    for row in run.buffers[o.index]:
        instants = instants_of(o.stream, row)
        relevant = o.relevance.row(instants, old, new)
        values = dict(zip(o.stream.schema.names, row, strict=True))
        if evaluate_term(condition, values, o.stream.schema) is not relevant:
            raise Broken(f"{where}: relevance of {o.stream.name}#{o.index} is {relevant} for {row}, its condition not")
        if o.relevance.segment(_bounds([instants]), old, new) is not relevant:
            raise Broken(
                f"{where}: relevance of {o.stream.name}#{o.index} is {relevant} for {row}, for its segment not"
            )
        if relevant:
            found.append(row)
    rows = run.buffers[o.index]
    for chosen in _segments(len(rows), random.Random(len(rows))):
        bounds = _bounds([instants_of(o.stream, rows[i]) for i in chosen])
        if any(rows[i] in found for i in chosen) and not o.relevance.segment(bounds, old, new):
            raise Broken(f"{where}: a segment of {o.stream.name}#{o.index} is left out with a relevant row")
    tally.irrelevant += len(rows) - len(found)
    return found


def _check_bounds(run: _Run, b: Progress, arrived: Mapping[str, list[Row]], tally: Tally, where: str) -> None:
    """Live rows never exceed what the bound allows for the measured rate, skew ahead and lag."""
    inputs = {(c.stream, y) for f in run.facts.propagation.values() for c in f.clauses for y, _ in c.distances}
    for o in run.facts.occurrences:
        # With several progressing attributes, each view may be bounded along another one.
        if not isinstance(o.bound, Bounded) or len(o.stream.progress) != 1:
            continue
        y = o.stream.progress[0]
        seen = [instants_of(o.stream, row)[y] for row in arrived[o.stream.name]]
        live = len(run.buffers[o.index])
        reached = [b[key] for key in inputs if b[key] != INF]
        behind = run.facts.behind(b, run.progress)
        if not reached and not behind:
            most = 0
        elif not reached or min(reached) == -INF or o.bound.horizon == -INF or not seen:
            most = len(seen) if o.bound.horizon != -INF else 0
        else:
            # A finished input waits for nothing: it reaches as far as its last row.
            own = b[o.stream.name, y]
            front = max(seen) if own == INF else own
            lag = max(0, front - min(reached))
            skew = max(0, max(seen) - front)
            most = _rate(seen, o.bound.span(skew, lag, behind))
        if live > most:
            raise Broken(f"{where}: {live} live rows of {o.stream.name}#{o.index}, but at most {most} by {o.bound}")
        tally.bounded += 1
        tally.attained += 0 < live == most


def _rate(instants: Sequence[int], span: Extended) -> int:
    """The most instants in any closed interval of a length."""
    return max((sum(start <= t <= start + span for t in instants) for start in instants), default=0) if span >= 0 else 0


def final(instants: Mapping[str, int], p: Mapping[str, Extended]) -> bool:
    """Whether a result row is final at progress p; one that promises nothing, a static one, always is."""
    return not p or any(instants[a] <= p[a] for a in p)


def compare(found: Iterable[Row], wanted: Iterable[Row], where: str) -> None:
    one, other = _bag(found), _bag(wanted)
    if one != other:
        early, missing = one - other, other - one
        raise Broken(f"{where}: emitted though not final or twice {dict(early)}, missing {dict(missing)}")


def _bag(rows: Iterable[Row]) -> Counter[Key]:
    return Counter(tuple(key_of(round(v, 9) if isinstance(v, float) else v) for v in row) for row in rows)


def _segments(count: int, rng: random.Random) -> list[list[int]]:
    places = list(range(count))
    rng.shuffle(places)
    size = rng.randint(1, 3)
    return [places[i : i + size] for i in range(0, count, size)]


def _bounds(rows: Sequence[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    return {name: (min(row[name] for row in rows), max(row[name] for row in rows)) for name in rows[0]}


def instants_of(stream: StreamDef, row: Row) -> dict[str, int]:
    found: dict[str, int] = {}
    for attribute, value in zip(stream.schema.attributes, row, strict=True):
        if attribute.temporal:
            assert isinstance(value, int)
            found[attribute.name] = value
    return found


def _as_tuple(stream: StreamDef, row: Mapping[str, object]) -> Row:
    return tuple(row[name] for name in stream.schema.names)  # type: ignore[misc]  # values of generated rows
