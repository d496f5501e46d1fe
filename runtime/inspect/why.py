"""Why a result is not there yet: the input that holds its progress back, by how much, and by which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended, format_duration
from tidegate.algebra.types import DataType
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.inner_queries import inner_names, inner_owner
from tidegate.analysis.progress.propagation import Clause, Propagation, difference
from tidegate.analysis.recursion import component_progress
from tidegate.analysis.zones.sites import edge_lines
from tidegate.analysis.zones.wording import amount, instant, shifted
from tidegate.analysis.zones.zone import Edge
from tidegate.runtime.batch.scheduler import SKIPPED, SkippedResult
from tidegate.runtime.batch.scheduler import from_json as skipped_results
from tidegate.runtime.batch.source_activity import ACTIVITY, DELAY, SourceActivity, from_json
from tidegate.runtime.ingest.inputs import instant_of
from tidegate.runtime.inspect.impossible import why_never
from tidegate.runtime.inspect.suspension import suspensions
from tidegate.runtime.inspect.why_answer import Hold, Part, Wait, Why
from tidegate.runtime.plan.progress import ProgressState, check_known
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import PROGRAM, StateError
from tidegate.runtime.state.manifest import Manifest, SourceCounts
from tidegate.runtime.state.meta import differences
from tidegate.runtime.state.store.interface import Store


def why(
    facts: ProgramFacts,
    manifest: Manifest | None,
    name: str | None = None,
    row: Mapping[str, Any] | None = None,
    store: Store | None = None,
) -> Why:
    """What holds a result back in the state that a manifest describes, or, for a row of it, what its finality waits
    for.

    `row` has the instants of the row: those on which the result progresses at least. Of a program's only result the
    name may be left out. With the `store` of its files, also where queries in a context are suspended.
    """
    name = asked_result(facts, name)
    state = _State(facts, manifest)
    queries = [query for query in facts.queries if query.query.stream == name]
    if row is None:
        parts = [state.held_back(query, frozenset()) for query in queries]
    else:
        instants = _instants(facts.streams[name], row)
        parts = [state.about_row(query, instants) for query in queries]
    if manifest is not None and store is not None:
        contexts = tuple(suspensions(facts, state.queries, manifest, store, name))
        parts = [replace(part, lines=(*part.lines, *contexts)) for part in parts]
    return Why(tuple(part.with_names(inner_names(facts)) for part in parts))


def asked_result(facts: ProgramFacts, name: str | None) -> str:
    """The result by this name, or the only one; `QueryError` TG402 for a name that is no result, or none where there
    are several.
    """
    results = _results(facts)
    if name is None and len(results) == 1:
        return results[0]
    if name is None:
        raise QueryError(
            "TG402",
            "why of which result? The program has several",
            hint=f"name one: why({results[0]!r}); it has {', '.join(results)}",
        )
    check_known(name, results, "result")
    return name


def _results(facts: ProgramFacts) -> list[str]:
    """Those that a user has named, without inner queries."""
    return list(dict.fromkeys(query.query.stream for query in facts.queries if not query.query.inner))


def why_checkpoint(
    facts: ProgramFacts, store: Store, name: str | None = None, row: Mapping[str, Any] | None = None
) -> dict[str, Why]:
    """`why` of one result or of all, from a checkpoint, whether a run has it open or not; nothing is changed.

    `StateError` TG501 where the checkpoint belongs to another program.
    """
    from tidegate.algebra.rewrites import rewrite_program
    from tidegate.runtime.plan.lower import lower

    inspected = inspect(store)
    plan = lower(facts, optimise=rewrite_program)
    expected = {key: value for key, value in plan.description.items() if not key.startswith(_OF_THE_RUN)}
    recorded = dict(inspected.meta.description) if isinstance(inspected.meta.description, dict) else {}
    program = {key: value for key, value in recorded.items() if not key.startswith(_OF_THE_RUN)}
    differing = differences(program, expected)
    if differing:
        raise StateError(
            PROGRAM,
            f"the checkpoint in {store.where} belongs to another program",
            because=tuple(differing),
            hint="name the file with the program that made it",
        )
    names = _results(facts) if name is None else [name]
    return {each: why(facts, inspected.manifest, each, row, store) for each in names}


#: Entries of a checkpoint's description that come from a run, not from the program: the layout depends on static
#: tables.
_OF_THE_RUN = ("table ", "key of ", "layout ")


def _instants(stream: StreamDef, row: Mapping[str, Any]) -> dict[str, int]:
    if not isinstance(row, Mapping):
        raise QueryError(
            "TG401",
            f"{stream.name}: {shown(row)} does not say which attributes a row has",
            hint="write {" + ", ".join(f'"{name}": ...' for name in stream.progress or ("time",)) + "}",
        )
    instants = {}
    for name in stream.schema.temporal:
        if name in row:
            value = instant_of(row[name], stream, name)
            if not isinstance(value, int):
                raise QueryError(
                    "TG403",
                    f"{stream.name}.{name}: a row holds an instant, not {shown(row[name])}",
                    hint="give the row's own instant",
                )
            instants[name] = value
    for name in row:
        check_known(name, stream.schema, f"attribute of {stream.name}")
    missing = [name for name in stream.progress if name not in instants]
    if missing:
        raise QueryError(
            "TG401",
            f"{stream.name}: when a row is final depends on {', '.join(missing)}",
            hint=f"give {', '.join(stream.progress)} of the row",
        )
    return instants


def _roughly(ticks: int) -> str:
    """A duration by its two largest units: what is left of a clock's microseconds tells nobody anything."""
    return " ".join(format_duration(ticks).split()[:2])


@dataclass(slots=True)
class _State:
    """Progress and what is known of the inputs after a batch."""

    facts: ProgramFacts
    manifest: Manifest | None
    queries: dict[str, dict[str, Extended]] = field(init=False)
    b: dict[tuple[str, str], Extended] = field(init=False)
    activity: dict[str, SourceActivity] = field(init=False, default_factory=dict)
    counts: Mapping[str, SourceCounts] = field(init=False, default_factory=dict)
    skipped: Mapping[str, SkippedResult] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        inputs = {(s.name, a): -INF for s in self.facts.program.inputs for a in s.progress}
        state = ProgressState(
            dict(inputs), {q.query.name: dict.fromkeys(q.propagation, -INF) for q in self.facts.queries}
        )
        if self.manifest is not None:
            state.load(self.manifest.progress)
            self.activity = from_json(self.manifest.extra.get(ACTIVITY))
            self.counts = self.manifest.counts
            self.skipped = skipped_results(self.manifest.extra.get(SKIPPED))
        self.queries, self.b = state.queries, dict(state.inputs)
        for query in self.facts.queries:
            for a in self.facts.streams[query.query.stream].progress:
                key = query.query.stream, a
                self.b[key] = min(self.queries[query.query.name][a], self.b.get(key, INF))

    # --- a result -----------------------------------------------------------------------------------------------------

    def held_back(self, query: QueryFacts, above: frozenset[str]) -> Part:
        """What holds a query's progress back, and so on down to inputs; `above` are the queries on the way here."""
        name = query.query.name
        p = self.queries[name]
        if query.is_static:
            return Part(name, f"{name} is complete: it waits for no stream")
        if all(value == INF for value in p.values()):
            return Part(name, f"{name} is complete: all that it reads has ended", self._read_rows(query))
        lines: list[tuple[str, str]] = []
        inner: dict[str, Part] = {}
        holds = []
        for attribute, function in self._functions(query).items():
            clause = self._holder(function)
            hold = self._hold(attribute, function, clause)
            holds.append(hold)
            lines += self._scheduled(query, attribute)
            lines += self._explained(query, hold, clause)
            for feeder in self._feeding(hold.stream):
                if feeder.query.name not in above | {name} and feeder.query.name not in inner:
                    inner[feeder.query.name] = self.held_back(feeder, above | {name})
        says = " or ".join(f"{a} = {self._instant(query, a, value)}" for a, value in p.items() if value != -INF)
        text = f"{name} is final up to {says}" if says else f"no row of {name} is final yet"
        lines += [*self._read_rows(query), *self._folded(query)]
        return Part(name, text, tuple(lines), tuple(inner.values()), holds=tuple(holds))

    def _folded(self, query: QueryFacts) -> Iterator[tuple[str, str]]:
        """Until when rows that fold stay one by one: while the result is held back they are more and more."""
        for occurrence in query.occurrences:
            if not occurrence.folds or occurrence.folding is None or not occurrence.folding.waits:
                continue
            kept = occurrence.kept
            for a, value in self.queries[query.query.name].items():
                if value not in (INF, -INF):
                    kept = kept.replace(f"p({a})", self._instant(query, a, value))
            yield f"rows of {occurrence.stream.name}", f"one by one while {kept}"

    def _allowed(self, query: QueryFacts, attribute: str) -> Extended:
        """How far the query could be by now, whatever its schedule."""
        recursion = self.facts.recursions.get(query.query.stream)
        if recursion is None:
            return query.propagation[attribute].evaluate(self.b)
        return component_progress(recursion, self.b)[query.query.name][attribute]

    def _scheduled(self, query: QueryFacts, attribute: str) -> Iterator[tuple[str, str]]:
        """That the query itself is behind what its inputs allow, by its schedule (rule R24)."""
        p, reach = self.queries[query.query.name][attribute], self._allowed(query, attribute)
        skipped = self.skipped.get(query.query.stream)
        # What its inner queries would allow is not known: they wait for it.
        below = any(inner_owner(o.stream.name) and o.stream.name in self.skipped for o in query.occurrences)
        if skipped is None or (reach <= p and not below):
            return
        yield "held back by", f"the schedule: {skipped.because}"
        if reach > p:
            type_ = query.output.schema[attribute].type
            further = f", {amount(int(reach - p), type_)} further" if INF not in (reach, -p) else ""
            yield "without it", f"final up to {attribute} = {instant(reach, type_)}{further}"

    def _functions(self, query: QueryFacts) -> Mapping[str, Propagation]:
        """The propagation functions, in recursion only with what the rank chose."""
        recursion = self.facts.recursions.get(query.query.stream)
        return query.propagation if recursion is None else recursion.chosen[query.query.name]

    def _reach(self, clause: Clause) -> Extended:
        return max(difference(self.b[clause.stream, y], d) for y, d in clause.distances)

    def _holder(self, function: Propagation) -> Clause:
        """The clause that is least; of equal ones, that of an input."""
        return min(function.clauses, key=lambda clause: (self._reach(clause), clause.stream in self.facts.streams))

    def _hold(self, attribute: str, function: Propagation, clause: Clause) -> Hold:
        by, _ = self._nearest(clause)
        others = [self._reach(candidate) for candidate in function.clauses if candidate.stream != clause.stream]
        return Hold(attribute, clause.stream, by, self._reach(clause), min(others, default=INF))

    def _nearest(self, clause: Clause) -> tuple[str, Extended]:
        """The attribute of the clause's stream that lets it reach as far as it does, and its distance."""
        return max(clause.distances, key=lambda pair: (difference(self.b[clause.stream, pair[0]], pair[1]), -pair[1]))

    def _explained(self, query: QueryFacts, hold: Hold, clause: Clause) -> Iterator[tuple[str, str]]:
        y, distance = self._nearest(clause)
        type_ = query.output.schema[hold.attribute].type
        yield "held back by", f"{hold.stream}.{y}, {self._arrived(hold.stream, y, type_)}"
        if distance != INF:
            yield "final when", f"{hold.attribute} <= {shifted(f'{hold.stream}.{y}', -int(distance), type_)}"
        for line in self._chain(query, clause, hold.attribute, y):
            yield "because", line
        if INF > hold.without > hold.reach:
            further = f", {amount(int(hold.without - hold.reach), type_)} further" if hold.reach != -INF else ""
            yield "without it", f"final up to {hold.attribute} = {instant(hold.without, type_)}{further}"
        yield from self._of_input(hold.stream, y)

    def _chain(self, query: QueryFacts, clause: Clause, attribute: str, y: str) -> Sequence[str]:
        edges: tuple[Edge, ...] = clause.zone.chain(("a", attribute), ("x", clause.occurrence, y))
        return edge_lines(query.query, query.federation, edges)

    def _of_input(self, stream: str, y: str) -> Iterator[tuple[str, str]]:
        """What moves the progress of an input, and what it has said so far; nothing of a result stream."""
        if stream in self.facts.streams:
            return
        known = self.activity.get(stream)
        definition = next(s for s in self.facts.program.inputs if s.name == stream)
        type_ = definition.schema[y].type
        greatest = None if known is None else known.greatest.get(y)
        yield (
            f"{stream}.{y}",
            "no row was accepted yet" if greatest is None else f"reaches to {instant(greatest, type_)}",
        )
        if known is not None:
            means = known.means.get(y, ())
            yield (
                f"{stream}.{y}",
                f"is moved by {' and '.join(means)}"
                if means
                else "has no delay, progress column or idle policy: only calls and its end move it",
            )
            if greatest is not None and self.b[stream, y] == -INF and any(way.startswith(DELAY) for way in means):
                yield f"{stream}.{y}", "had no delay when its rows came: it moves with the next row"
            if self.manifest is not None and (silent := self.manifest.clock - known.clock) > 0:
                yield f"{stream}.{y}", f"was silent for the last {_roughly(silent)} of clock"
        rejected = self.counts[stream].rejected if stream in self.counts else {}
        if rejected:
            said = ", ".join(f"{rows:,} {reason}" for reason, rows in sorted(rejected.items()))
            yield f"{stream}.{y}", f"rejected rows: {said}"

    def _read_rows(self, query: QueryFacts) -> tuple[tuple[str, str], ...]:
        """How many rows of each input there are: a result may be empty because nothing came, or nothing fits."""
        streams = dict.fromkeys(o.stream.name for o in query.occurrences)
        counts = [f"{self.counts[name].accepted:,} of {name}" for name in streams if name in self.counts]
        return (("accepted rows", ", ".join(counts)),) if counts else ()

    def _feeding(self, stream: str) -> list[QueryFacts]:
        return [query for query in self.facts.queries if query.query.stream == stream]

    def _instant(self, query: QueryFacts, attribute: str, value: Extended) -> str:
        return instant(value, query.output.schema[attribute].type)

    def _arrived(self, stream: str, y: str, type_: DataType) -> str:
        value = self.b[stream, y]
        if value in (INF, -INF):
            return "which has ended" if value == INF else "of which nothing is known to have arrived"
        return f"which has arrived up to {instant(value, type_)}"

    # --- a row --------------------------------------------------------------------------------------------------------

    def about_row(self, query: QueryFacts, row: Mapping[str, int]) -> Part:
        """When a row with these instants is final, or why it never is."""
        name, schema = query.query.name, query.output.schema
        called = f"a row of {name} with " + ", ".join(f"{a} = {instant(v, schema[a].type)}" for a, v in row.items())
        impossible = self._impossible(query, row) or tuple(("because", line) for line in why_never(query.query, row))
        if impossible:
            return Part(name, f"{called} never comes: its instants contradict the conditions", impossible)
        p = self.queries[name]
        reached = [a for a, value in p.items() if row[a] <= value]
        if query.is_static or reached:
            past = (
                ""
                if query.is_static
                else f", since {reached[0]} is final up to {self._instant(query, reached[0], p[reached[0]])}"
            )
            says = f"{called} is final{past}: it has been reported, or there is no such row"
            return Part(name, says, self._read_rows(query))
        lines: list[tuple[str, str]] = []
        inner: list[Part] = []
        waits: list[Wait] = []
        for attribute, function in self._functions(query).items():
            if len(p) > 1:
                lines.append(("by", f"{attribute} = {self._instant(query, attribute, row[attribute])}"))
            if row[attribute] <= self._allowed(query, attribute):
                lines += self._scheduled(query, attribute)
            for clause in function.clauses:
                if self._reach(clause) < row[attribute]:
                    waits.append(self._wait(attribute, clause, row[attribute]))
                    lines += self._awaited(query, waits[-1], clause)
                    inner += (self.held_back(feeder, frozenset()) for feeder in self._feeding(clause.stream))
        once = {part.query: part for part in inner}
        alone = all(any(self._stands(wait) for wait in waits if wait.attribute == a) for a in p)
        says = f"{called} is not final yet" + (", and will never be by itself" if alone else "")
        return Part(name, says, tuple(lines), tuple(once.values()), waits=tuple(waits))

    def _stands(self, wait: Wait) -> bool:
        """Whether nothing moves what is waited for but calls and the end of the stream."""
        known = self.activity.get(wait.stream)
        return known is not None and not any(known.means.values())

    def _wait(self, attribute: str, clause: Clause, value: int) -> Wait:
        """What a clause demands of its input for this instant: the nearest of its attributes."""
        waits = [Wait(attribute, clause.stream, y, value + d, self.b[clause.stream, y]) for y, d in clause.distances]
        return min(waits, key=lambda wait: (wait.needed == INF, wait.needed - wait.has if wait.has != -INF else INF))

    def _awaited(self, query: QueryFacts, wait: Wait, clause: Clause) -> Iterator[tuple[str, str]]:
        type_ = query.output.schema[wait.attribute].type
        if wait.needed == INF:
            yield "waits for", f"the end of {wait.stream}: no condition bounds it relative to {wait.attribute}"
            return
        missing = f", {amount(int(wait.needed - wait.has), type_)} more" if wait.has != -INF else ""
        yield "waits for", f"{wait.stream}.{wait.by} to arrive up to {instant(wait.needed, type_)}{missing}"
        yield "waits for", f"  {self._arrived(wait.stream, wait.by, type_)}"
        for line in self._chain(query, clause, wait.attribute, wait.by):
            yield "because", line
        yield from self._of_input(wait.stream, wait.by)

    def _impossible(self, query: QueryFacts, row: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
        """Constraints of the first case that the instants break, where they break some in every case."""
        broken: list[tuple[tuple[str, str], ...]] = []
        for zone in query.federation.zones:
            pairs = [(w, v) for w in row for v in row if row[v] - row[w] > zone.distance(("a", w), ("a", v))]
            if not pairs:
                return ()
            w, v = pairs[0]
            lines = edge_lines(query.query, query.federation, zone.chain(("a", w), ("a", v)))
            broken.append(tuple(("because", line) for line in lines))
        return broken[0] if broken else (("because", "no instants satisfy the conditions of this query"),)
