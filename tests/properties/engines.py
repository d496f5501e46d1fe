"""The embedded engine against the complete evaluation: any program, any batching, any permitted disorder.

Bad rows (late, or with NULL for an instant) are mixed in on purpose: they must be counted, and change nothing.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from tests.properties.delays import Delays, counting_joined, declared, delayed
from tests.properties.drive import Broken, Tally, as_tuples, compare, final, instants_of
from tests.properties.folded_state import check_folded
from tests.strategies.programs import Case, Row
from tests.strategies.streams import Script
from tests.thresholds import drawn, small
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.semantics import Row as Tuple
from tidegate.algebra.semantics import evaluate, evaluate_program
from tidegate.algebra.time import INF, Extended, instant_ticks, ticks_instant
from tidegate.algebra.types import Kind
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime import rows as small_rows
from tidegate.runtime.batch import garbage
from tidegate.runtime.batch.garbage import Folding, GarbageCollection
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import evaluation, rewriting, segment_cache, segment_reader
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval import purge_schedule as sweep
from tidegate.runtime.eval.joins import indexed_rows
from tidegate.runtime.plan.steps import PurgeMode
from tidegate.runtime.state.store.memory import MemoryStore

EPOCH_DAY = dt.date(1970, 1, 1)


def check_embedded(
    case: Case,
    script: Script,
    facts: ProgramFacts,
    tally: Tally,
    *,
    purge: GarbageCollection | None = None,
    delays: bool = False,
) -> None:
    """Runs the script through a session; after every step its results are those that its progress makes final.

    Every other case is left to Polars, which otherwise would see only what NumPy cannot do, and of three cases in four
    one size at which the runtime takes another way is small. With `delays`, every other case declares how late its rows
    may be, and has them in fewer batches: then events are joined into event runs. With `purge` partner and kill rule
    are used wherever they apply, by that garbage collection.
    """
    rng = random.Random(f"few rows {case.seed}/{len(script)}")
    most = rng.choice((-1, small_rows.MOST))
    kept: Delays = {}
    if delays and rng.random() < 0.5:
        script, kept = delayed(case, script, rng)
    modes: tuple[PurgeMode, ...] = ("planned", "always", "off") if delays else ("planned", "off")
    threshold, value = drawn(random.Random(f"threshold {case.seed}/{len(script)}"))
    with (
        patch.object(small_rows, "MOST", most),
        little_work(rng, looks=purge == "amortised" or rng.random() < 0.5),
        small(threshold, value),
        counting_joined(tally),
    ):
        _check_steps(case, script, facts, tally, purge, kept, modes)


@contextmanager
def little_work(rng: random.Random, *, looks: bool) -> Iterator[None]:
    """In every other case a batch may rewrite and merge hardly any rows, and reads them piece by piece.

    In every other case it looks any rows up by their keys and instants. Each threshold is small by itself too, so that
    the usual value of the others is among the cases. With `looks` partner and kill rule look at any few rows, at few of
    them at a time.
    """
    with ExitStack() as patches:
        for module, name, values in (
            (garbage, "MERGED_ROWS", (1, 3)),
            (garbage, "MOST_SEGMENTS", (2, 1 << 20)),
            (garbage, "REWRITTEN", (0, 1)),
            (garbage, "LEAST_REWRITTEN", (0, 3)),
            (rewriting, "PIECE_ROWS", (1, 3)),
            (rewriting, "PIECE_BYTES", (0, 100)),
        ):
            if rng.random() < 0.5:
                patches.enter_context(patch.object(module, name, rng.choice(values)))
        if rng.random() < 0.5:
            for module, name, most in (
                (evaluation, "LOOKED_UP", 0),
                (evaluation, "SHARE", 0),
                (segment_reader, "INDEXED", 0),
                (segment_cache, "LOOKS", rng.choice((0, 0, 1))),
                (indexed_rows, "ROUNDS", rng.choice((0, 1, indexed_rows.ROUNDS))),
            ):
                patches.enter_context(patch.object(module, name, most))
        if looks:
            for module, name, value in (
                (garbage, "FLOOR", 1),
                (garbage, "WHOLE_STEPS", rng.choice((0, 0, 2))),
                (garbage, "STRIDE", 0),
                (garbage, "STEP", rng.choice((2, 5, 1000))),
                (sweep, "RATE", rng.choice((sweep.RATE, {"young": 1000.0, "old": 1000.0}))),
                (garbage, "WORTH", rng.choice((0.0, 0.5))),
                (sweep, "STRIDE", 0),
                (sweep, "YOUNG", rng.choice((1, 3))),
                (sweep, "JUDGED", rng.choice((1, 4, 1000))),
                (sweep, "PATIENCE", rng.choice((0, 1, 6))),
            ):
                patches.enter_context(patch.object(module, name, value))
        yield


def _check_steps(
    case: Case,
    script: Script,
    facts: ProgramFacts,
    tally: Tally,
    purge: GarbageCollection | None,
    delays: Delays,
    modes: Sequence[PurgeMode],
) -> None:
    rng = random.Random(f"{case.seed}/{len(script)}")
    usual: tuple[GarbageCollection, ...] = ("amortised", "exact", "exact", "off")
    collect = rng.choice(usual) if purge is None else purge
    purging: PurgeMode = "always" if purge else rng.choice(modes)
    restarts = rng.random() < 0.3
    threads = random.Random(f"threads {case.seed}").choice((1, 2))
    store = MemoryStore()
    statics = {s.name: [as_given(row, s.schema) for row in case.rows[s.name]] for s in case.statics}

    def begin() -> Session:
        folding: Folding = rng.choice(("on", "on", "on", "off"))
        options = RunOptions(collect_garbage=collect, purging=purging, folding=folding, threads=threads)
        return Session(facts, store, declared(delays), statics, options=options)

    session = begin()
    whole = whole_results(case)
    b: dict[tuple[str, str], Extended] = {(s.name, a): -INF for s in case.streams for a in s.progress}
    arrived: dict[str, list[Row]] = {s.name: [] for s in case.streams}
    tally.runs += 1
    for number, step in enumerate(script):
        where = f"step {number} (garbage collection {collect})"
        pushed, together = _push(session, case, step.rows, b, rng)
        for name, progress in step.progress.items():
            stream = next(s for s in case.streams if s.name == name)
            if set(progress.values()) == {INF} and set(progress) == set(stream.progress) and rng.random() < 0.5:
                session.finish(name)
            else:
                session.advance(name, {a: instant_given(value, stream.schema, a) for a, value in progress.items()})
            b |= {(name, a): max(value, b[name, a]) for a, value in progress.items()}
        _raise_by_delays(b, step.rows, delays)
        for (name, a), value in b.items():
            if value not in (INF, -INF) and rng.random() < 0.1:
                # Progress never goes back, whoever says so.
                schema = next(s for s in case.streams if s.name == name).schema
                session.advance(name, {a: instant_given(value - rng.randint(0, 5), schema, a)})
        report = session.step()
        if report.interleaved and together:
            raise Broken(f"{where}: slices interleave, although the rows keep the delay")
        _check_counts(report.counts, pushed, where)
        while session._runner.state.is_unfinished:
            tally.unfinished += 1
            if rng.random() < 0.3:
                check_results(session, facts, whole, f"{where}, unfinished")
            if restarts and rng.random() < 0.3:
                session.close()
                session = begin()
            report = session.step()
        _check_progress(session, facts, b, where)
        for name, rows in step.rows.items():
            arrived[name] += rows
        if collect == "exact":
            tally.folded += check_folded(session, arrived, report.settled, where)
        tally.increments += len(report.results)
        tally.freed += sum(report.freed.values())
        if restarts and rng.random() < 0.3:
            session.close()
            session = begin()
        if rng.random() < 0.3 or number == len(script) - 1:
            check_results(session, facts, whole, where)
    tally.results += sum(map(len, whole.values()))
    tally.with_results += any(whole.values())
    if collect != "off" and any(session.live_rows().values()):
        raise Broken(f"rows are still stored after the end of all input: {session.live_rows()}")
    session.close()


#: The case that was last evaluated as a whole, with the rows of each query: it may be run in several ways.
_evaluated: list[tuple[Case, Mapping[str, list[Tuple]]]] = []


def whole_results(case: Case) -> Mapping[str, list[Tuple]]:
    """The complete result of each query of a case, by what queries mean."""
    if not _evaluated or _evaluated[0][0] is not case:
        inputs = as_tuples(case)
        complete = {**inputs, **evaluate_program(case.program, inputs)}
        _evaluated[:] = [(case, {query.name: evaluate(query.node, complete) for query in case.program.queries})]
    return _evaluated[0][1]


def _raise_by_delays(b: dict[tuple[str, str], Extended], rows: Mapping[str, Sequence[Row]], delays: Delays) -> None:
    """Progress by the greatest instants that are accepted."""
    for name, of in delays.items():
        for a, delay in of.items():
            for row in rows.get(name, ()):
                b[name, a] = max(b[name, a], int(row[a]) - delay - 1)  # type: ignore[call-overload]  # an instant


def _push(
    session: Session,
    case: Case,
    rows: Mapping[str, Sequence[Row]],
    b: Mapping[tuple[str, str], Extended],
    rng: random.Random,
) -> tuple[dict[str, tuple[int, int]], bool]:
    """Pushes a step's rows, and bad ones among them; returns good and bad rows per stream, and whether each stream's
    came together.

    Batches keep a delay. Rows of one that come in two pushes are in any order, and need not keep it among themselves.
    """
    pushed: dict[str, tuple[int, int]] = {}
    together = True
    for stream in case.streams:
        good = [as_given(row, stream.schema) for row in rows.get(stream.name, ())]
        bad = [as_given(row, stream.schema) for row in _bad_rows(stream, case, b, rng)]
        pushed[stream.name] = (len(good), len(bad))
        mixed = good + bad
        rng.shuffle(mixed)
        cut = rng.randint(0, len(mixed)) if rng.random() < 0.3 else len(mixed)
        for part in (mixed[:cut], mixed[cut:]):
            if part:
                session.push(stream.name, part)
        together &= cut in (0, len(mixed))
    return pushed, together


def _bad_rows(stream: StreamDef, case: Case, b: Mapping[tuple[str, str], Extended], rng: random.Random) -> list[Row]:
    """Rows that must be rejected: at or below b on some progressing attribute, or without an instant."""
    found: list[Row] = []
    known = case.rows[stream.name]
    if not known or rng.random() < 0.7:
        return found
    for _ in range(rng.choice((1, 1, 2))):
        row = dict(rng.choice(known))
        if rng.random() < 0.15:
            row[rng.choice(stream.schema.temporal)] = None
            found.append(row)
            continue
        reached = [(a, int(v)) for a in stream.progress if (v := b[stream.name, a]) not in (INF, -INF)]
        if not reached:
            continue
        a, limit = rng.choice(reached)
        row[a] = limit - rng.choice((0, 0, 0, 1, 3))
        found.append(row)
    return found


def _check_counts(counts: Mapping[str, Any], pushed: Mapping[str, tuple[int, int]], where: str) -> None:
    for name, (good, bad) in pushed.items():
        if not good and not bad:
            continue
        found = counts[name]
        rejected = sum(found.rejected.values())
        if found.rows_in != found.accepted + rejected:
            raise Broken(f"{where}: {found.rows_in} rows of {name} came in, {found.accepted} + {rejected} are counted")
        if (found.accepted, rejected) != (good, bad):
            raise Broken(f"{where}: {name}: {good} good and {bad} bad rows, but {found}")


def _check_progress(session: Session, facts: ProgramFacts, b: Mapping[tuple[str, str], Extended], where: str) -> None:
    """Progress is the greatest fixpoint of all propagation functions, found from +∞ by trying."""
    known = dict(b)
    wanted: dict[str, dict[str, Extended]] = {}
    for _ in range(1000):
        for name, output in facts.streams.items():
            feeding = [wanted[q.query.name] for q in facts.queries if q.query.stream == name and wanted]
            known |= {(name, a): min((p[a] for p in feeding), default=INF) for a in output.progress}
        before = wanted
        wanted = {q.query.name: {a: f.evaluate(known) for a, f in q.propagation.items()} for q in facts.queries}
        if wanted == before:
            break
    for name, progress in wanted.items():
        if session.progress[name] != progress:
            raise Broken(f"{where}: {name} is at {session.progress[name]} instead of {progress}")


def check_results(session: Session, facts: ProgramFacts, whole: Mapping[str, list[Tuple]], where: str) -> None:
    for name, output in facts.streams.items():
        wanted: list[Tuple] = []
        own = [query for query in facts.queries if query.query.stream == name]
        if any(query.query.inner for query in own):
            continue
        for query in own:
            if query.query.stream == name:
                new = session.progress[query.query.name]
                rows = whole[query.query.name]
                wanted += [row for row in rows if final(instants_of(output, row), new)]
        found = [as_taken(row, output.schema) for row in session.results(name)]
        compare(found, wanted, f"{name} at {where}")


# -- values as users see them -----------------------------------------------------------------------------------------


def as_given(row: Row, schema: Schema) -> dict[str, Any]:
    """A generated row as a user would push it."""
    return {name: _user(value, schema, name) for name, value in row.items()}


def _user(value: object, schema: Schema, name: str) -> Any:
    if isinstance(value, int) and schema[name].type.kind is Kind.TIMESTAMP:
        return ticks_instant(value)
    if isinstance(value, int) and schema[name].type.kind is Kind.DATE:
        return EPOCH_DAY + dt.timedelta(days=value)
    return value


def instant_given(value: Extended, schema: Schema, name: str) -> Any:
    return value if value in (INF, -INF) else _user(int(value), schema, name)


def as_taken(row: Mapping[str, Any], schema: Schema) -> Tuple:
    """A result row as `semantics` gives it."""
    return tuple(_held(row[name]) for name in schema.names)


def _held(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return instant_ticks(value)
    return (value - EPOCH_DAY).days if isinstance(value, dt.date) else value
