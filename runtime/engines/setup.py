"""What both engines do before the first batch: plan, options, static tables, sinks, checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl
import pyarrow as pa

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.rewrites import rewrite_program
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.batch.executor import Executor
from tidegate.runtime.batch.garbage import Folding, GarbageCollection
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.connectors.directory import Directory
from tidegate.runtime.connectors.overlaps import check_apart, read_places
from tidegate.runtime.connectors.read_files import putting_away
from tidegate.runtime.connectors.sinks import CallbackSink, DiscardSink, MemorySink, ParquetSink, Sink, is_gone
from tidegate.runtime.connectors.sources import ON_ERROR, Files, OnError, Source, SourceOptions
from tidegate.runtime.connectors.waiting import WaitingFiles
from tidegate.runtime.engines.compactions import Compactions
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval.beginnings.memory import beginnings_of
from tidegate.runtime.eval.increment import increment, no_rows, read_leaves
from tidegate.runtime.eval.static_matches import StaticMatches
from tidegate.runtime.ingest.inputs import hold_static, static_digest
from tidegate.runtime.ingest.keys import key_memory
from tidegate.runtime.plan.layout import layout
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.progress import check_known, input_streams
from tidegate.runtime.plan.schedule import Timetable, checked_schedule
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.checkpoint import Checkpoint, UnreadOffer
from tidegate.runtime.state.codec import plain
from tidegate.runtime.state.errors import memory_errors, storage_errors
from tidegate.runtime.state.inputs.positions import ChangedFile, Offer, SourceFile, no_text
from tidegate.runtime.state.inputs.put_away import PuttingAway
from tidegate.runtime.state.manifest import StagedOutput
from tidegate.runtime.state.outputs.staging import Sink as StateSink
from tidegate.runtime.state.quarantine import Retention
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import make_directory
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.paths import slug, without_secrets
from tidegate.version import VERSION

#: The code of the error of a function that takes results; the batch is committed.
CALLBACK_FAILED: Final = "TG414"

#: Files that a batch reads, by source, and those that no batch has read yet, as they are now.
FoundFiles = Mapping[str, tuple[SourceFile, ...]]
UnreadFiles = Mapping[str, WaitingFiles]


@dataclass(frozen=True, slots=True)
class Setup:
    """A program made ready to run on a checkpoint."""

    plan: Plan
    streams: Mapping[str, StreamDef]
    sources: Mapping[str, Source]
    options: Mapping[str, SourceOptions]
    statics: Mapping[str, pl.DataFrame]
    sinks: Mapping[str, Sink]
    checkpoint: Checkpoint
    timetable: Timetable
    collect_garbage: GarbageCollection
    folding: Folding
    on_error: Mapping[str, OnError]
    """Per result stream what happens to rows of its queries without a value."""
    remade: tuple[str, ...] = ()
    """Result streams whose directory was gone, with what batches before had published there."""
    directories: Mapping[str, Directory] = field(init=False)
    """What is new in the directories of sources."""
    compactions: Compactions = field(init=False)

    def __post_init__(self) -> None:
        log = self.checkpoint.positions
        files = {name: s.data for name, s in self.sources.items() if isinstance(s.data, Files)}
        directories = {name: Directory(name, data, log) for name, data in files.items()}
        object.__setattr__(self, "directories", directories)
        object.__setattr__(self, "compactions", Compactions(self.sinks, self.checkpoint.store.failpoints))
        for data in files.values():
            self.checkpoint.reads(data.directory)

    def runner(self, executor: Executor) -> Runner:
        """The batch loop of this run, on an engine."""
        return Runner(
            self.plan,
            self.checkpoint,
            executor,
            self.options,
            self.collect_garbage,
            self.folding,
            self.timetable,
            self.on_error,
        )

    def judged(self, stream: str) -> Schema:
        """The columns by which the rows of a stream are judged."""
        return self.options[stream].judged(self.streams[stream].schema)

    @property
    def written(self) -> frozenset[str]:
        """Result streams whose rows a sink wants."""
        return frozenset(name for name, sink in self.sinks.items() if not isinstance(sink, DiscardSink))

    @property
    def follows_clock(self) -> bool:
        """Whether there may be something to do although nothing is new."""
        by_clock = any(options.idle is not None or options.arrival is not None for options in self.options.values())
        return by_clock or self.timetable.follows_time

    def admit(self, offer: Offer) -> UnreadOffer:
        """What of an offer is to be read; `QueryError` TG411 for a file that changed after it was read, unless bad
        files are set aside.
        """
        admission = self.checkpoint.admit(offer)
        for file in admission.changed:
            self._check_unchanged(file.source, [file])
        return admission

    def unread(self, *, everything: bool = False) -> UnreadFiles:
        """The files that were never read, in their order; `QueryError` TG411 for one that changed after it was read,
        `StateError` TG500 for a name that is not UTF-8. Where bad files are set aside, `newly_passed_over` and
        `unnamed` have them.

        Those that a batch may read are as they are now; with `everything`, it may read all of them.
        """
        unread = {}
        with memory_errors("looking for files"):
            for name, directory in self.directories.items():
                unread[name] = directory.look(None if everything else directory.files.per_batch)
        for name, directory in self.directories.items():
            # The look asked for the last of them; those before may be mended since.
            self._check_unchanged(name, reversed(directory.changed.values()))
        for name, directory in self.directories.items():
            if directory.unnamed and self.options[name].on_bad_file == "fail":
                raise no_text(name, min(directory.unnamed))
        return unread

    def read(self, files: FoundFiles) -> None:
        """These were read by a batch that is committed."""
        for name, some in files.items():
            self.directories[name].read(some)

    def close(self) -> None:
        """Give up compactions that were begun, what watches directories, and the checkpoint: each of them, whatever
        another one raises.
        """
        with ExitStack() as closing:  # the last one first
            closing.callback(self.checkpoint.close)
            for directory in self.directories.values():
                closing.callback(directory.close)
            closing.callback(self.compactions.close)

    def newly_passed_over(self, name: str) -> list[ChangedFile]:
        """The files of a source that changed after they were read, where its `on_bad_file` passes them over, and that
        were not asked for before.
        """
        changed = self._judged_by_time(self.directories[name].newly_changed())
        return [] if self.options[name].on_bad_file == "fail" else changed

    def _check_unchanged(self, source: str, changed: Iterable[ChangedFile]) -> None:
        if self.options[source].on_bad_file == "fail":
            for file in self._judged_by_time(changed):
                raise QueryError(
                    "TG411",
                    str(file),
                    hint="files are read once, whole: put new rows, and corrected ones that were rejected, into "
                    "new files, and move a changed file away; "
                    'on_bad_file="quarantine" passes over it with a warning',
                )

    def _judged_by_time(self, changed: Iterable[ChangedFile]) -> list[ChangedFile]:
        # Those of the checkpoint itself are compared byte for byte, whatever their time.
        inside = os.path.join(os.path.abspath(self.checkpoint.store.where), "")
        return [file for file in changed if not file.current.path.startswith(inside)]

    def read_by(self, reading: FoundFiles, unread: UnreadFiles) -> frozenset[str]:
        """Streams of whose directories nothing unread is left once the files of this batch are read."""
        return frozenset(self.streams) - self._left(reading, unread)

    def waiting(self, reading: FoundFiles, unread: UnreadFiles) -> frozenset[str]:
        """Streams with an idle policy of whose directories this batch leaves files for later ones."""
        return frozenset(name for name in self._left(reading, unread) if self.options[name].idle is not None)

    def _left(self, reading: FoundFiles, unread: UnreadFiles) -> frozenset[str]:
        """Streams of which a file is left unread."""
        return frozenset(name for name, files in unread.items() if files.has_others(reading.get(name, ())))

    def ended(self, read: frozenset[str]) -> dict[tuple[str, str], Extended]:
        """Progress of the bounded directories among the streams that are read to their end."""
        return {
            (name, a): INF
            for name, source in self.sources.items()
            if isinstance(source.data, Files) and source.bounded and name in read and not self.directories[name].is_gone
            for a in self.streams[name].progress
        }


def prepare(
    facts: ProgramFacts,
    store: Store,
    sources: Mapping[str, Source],
    statics: Mapping[str, Any],
    sinks: Mapping[str, Sink],
    run: RunOptions = RunOptions(),
    watched: Mapping[str, Sequence[str]] | None = None,
) -> Setup:
    """Checks what a run is given against the program, and opens its checkpoint, recovered to the last commit.

    `watched` are the directories and files that an engine reads for streams and static tables by itself.
    """
    timetable = checked_schedule(run.schedule, facts)
    streams = {stream.name: stream for stream in facts.program.inputs if not stream.static}
    results = {query.query.stream for query in facts.queries if not query.query.inner}
    on_error = _checked_on_error(run.on_error, results, facts)
    for name in sources:
        check_known(name, streams, "stream")
    for name, sink in sinks.items():
        check_known(name, results, "result")
        _check_sink(name, sink)
    reads = read_places(sources)
    reads |= read_places(statics)
    reads |= watched or {}
    check_apart(reads, sinks, directory_of(store))
    leaving = putting_away(sources, reads, sinks, store)
    options = {name: sources.get(name, Source(None)).options(stream) for name, stream in streams.items()}
    tables = hold_statics(facts, statics)
    plan = lower(facts, optimise=rewrite_program, purging=run.purging, multiplies=StaticMatches(tables).are_several)
    every_table = tables | _static_results(plan, tables)
    inner = {query.stream for query in plan.queries if query.facts.query.inner}
    every_sink = {name: sinks.get(name, MemorySink()) for name in results} | {name: DiscardSink() for name in inner}
    absent = {name: sink.directory for name, sink in every_sink.items() if is_gone(sink)}
    checkpoint = _open(store, plan, tables, options, every_sink, run.retention, leaving)
    known = {} if checkpoint.manifest is None else checkpoint.manifest.results
    before = {(query.stream, known.get(query.name)) for query in plan.queries}
    remade = tuple(name for name, directory in absent.items() if (name, directory) in before)
    return Setup(
        plan,
        streams,
        dict(sources),
        options,
        every_table,
        every_sink,
        checkpoint,
        timetable,
        run.collect_garbage,
        run.folding,
        on_error,
        remade,
    )


def _checked_on_error(on_error: object, results: Collection[str], facts: ProgramFacts) -> dict[str, OnError]:
    """What happens to rows of a result's queries without a value; `QueryError` TG401 or TG402 for what says nothing of
    it. Inner queries fail where a query that reads them does.
    """
    if isinstance(on_error, Mapping):
        for name in on_error:
            check_known(name, results, "result")
        by_stream = dict(on_error)
        inner = {query.query.stream for query in facts.queries if query.query.inner}
        for _ in inner:  # inner queries may read each other
            failing = [query for query in facts.queries if by_stream.get(query.query.stream) == "fail"]
            read = {use.stream.name for query in failing for use in query.occurrences}
            by_stream |= dict.fromkeys(read & inner, "fail")
    else:
        by_stream = dict.fromkeys((query.query.stream for query in facts.queries), on_error)
    for name, choice in by_stream.items():
        if choice not in ON_ERROR:
            raise QueryError("TG401", f"{name}: unknown on_error={shown(choice)}", hint=f"one of {', '.join(ON_ERROR)}")
    return by_stream


def _check_sink(name: str, sink: object) -> None:
    """`QueryError` TG401 for what is no sink, with the one that is probably meant."""
    if isinstance(sink, Sink):
        return
    match sink:
        case str() | os.PathLike():
            hint = f"for a directory, write tg.parquet_sink({without_secrets(os.fsdecode(sink))!r})"
        case _ if callable(sink):
            hint = (
                f"for a function, write tg.callback({getattr(sink, '__name__', 'function')}): it gets the table "
                "and the batch number"
            )
        case _:
            hint = "give tg.parquet_sink(directory) or tg.callback(function)"
    raise QueryError("TG401", f"{name}: {kind_of(sink)} is no sink", hint=hint)


def hold_statics(facts: ProgramFacts, given: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Every static table of the program as it is held; `QueryError` for one that is not given."""
    tables = {table.name: table for table in facts.program.inputs if table.static}
    for name in given:
        check_known(name, tables, "static table")
    missing = sorted(set(tables) - set(given))
    if missing:
        raise QueryError(
            "TG406", f"no rows given for static table {', '.join(missing)}", hint="pass statics={name: rows}"
        )
    return {name: hold_static(table, given[name]) for name, table in tables.items()}


def _static_results(plan: Plan, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Results that depend on static tables alone: complete before the first batch, and static tables to other
    queries.
    """
    known = dict(tables)
    for query in plan.queries:
        if query.facts.is_static:
            # A stream whose rows cannot matter, since no instants satisfy the condition on them, may be read all the
            # same.
            frames = [None if leaf.buffer is None else no_rows(leaf.buffer) for leaf in query.leaves]
            leaves = read_leaves(Demand.of(query, {}, {}), frames, known)
            rows = increment(query, leaves, {}, {}, {})
            known[query.stream] = pl.concat([known[query.stream], rows]) if query.stream in known else rows
    return {name: frame for name, frame in known.items() if name not in tables}


def _open(
    store: Store,
    plan: Plan,
    statics: Mapping[str, pl.DataFrame],
    options: Mapping[str, SourceOptions],
    sinks: Mapping[str, Sink],
    quarantine_keep: Retention,
    leaving: Mapping[str, PuttingAway],
) -> Checkpoint:
    # Of the tables as given: what follows from them comes in any order.
    description = dict(plan.description) | {f"table {name}": static_digest(frame) for name, frame in statics.items()}
    streams = input_streams(plan)
    remembered = [(key_memory(s, key).buffer, key) for s in streams if (key := options[s.name].key)]
    # Remembered keys are state, and rows of before cannot be judged by another key.
    description |= {f"key of {name}": ", ".join(source.key) for name, source in options.items() if source.key}
    fingerprint = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    lasting = not isinstance(store, MemoryStore)
    targets = {query.name: _target(query.stream, sinks[query.stream], lasting) for query in plan.queries}
    wanted = {name: target for name, target in targets.items() if target is not None}
    return Checkpoint.open(
        store,
        fingerprint,
        description,
        sinks=wanted,
        quarantine_keep=quarantine_keep,
        version=VERSION,
        layout=plain(layout(plan, remembered, (one.buffer for s in streams if (one := beginnings_of(s)) is not None))),
        putting_away=leaving,
    )


def directory_of(store: Store) -> str | None:
    """The directory in which a store's files lie; None for one in memory."""
    lock = store.local_path("lock")
    return None if lock is None else os.path.dirname(lock)


def results_area(stream: str) -> str:
    """Where the results of a stream with a memory sink stay inside the store."""
    return f"results/{slug(stream)}"


def _target(stream: str, sink: Sink, lasting: bool) -> StateSink | None:
    match sink:
        case MemorySink():
            return results_area(stream)
        case ParquetSink(directory, _):
            with storage_errors(f"making the directory {directory} for results of {stream}"):
                make_directory(directory)
            return directory
        case CallbackSink(function):

            def deliver(seq: int, _: StagedOutput, table: pa.Table) -> None:
                try:
                    function(table, seq)
                except Exception as error:
                    raise QueryError(
                        CALLBACK_FAILED,
                        (f"batch {seq} is committed, but " if lasting else f"in batch {seq} ")
                        + f"the function that takes results of {stream} failed: {error!r}",
                        hint="open the checkpoint again: it is called again with the same rows; do not push them again"
                        if lasting
                        else (
                            "what it was given is not given again; a run with checkpoint= calls it again when it "
                            "goes on"
                        ),
                    ) from error

            return deliver
        case DiscardSink():
            return None
