"""What a run says by itself: an input of which every row is rejected, and one that will never progress."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from tidegate.algebra.errors import Problem, Site, call_site
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import INF
from tidegate.algebra.types import Kind
from tidegate.analysis.inner_queries import inner_names
from tidegate.runtime.batch.instants import instant_text
from tidegate.runtime.connectors.in_toml import as_written
from tidegate.runtime.connectors.sinks import ParquetSink, is_gone
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.engines.rejections import (
    MENDS,
    SomeRows,
    all_rejected,
    example,
    file_rejected,
    is_rejected,
    last_of,
    place_of_term,
    rows_by_origin,
)
from tidegate.runtime.ingest.raw_rows import Raw
from tidegate.runtime.ingest.values import MISSING
from tidegate.runtime.state.errors import StateError, is_out_of_memory
from tidegate.runtime.state.manifest import UNREADABLE, SourceCounts, added, unreadable_files
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.algebra.time import Extended
    from tidegate.runtime.batch.report import BatchReport
    from tidegate.runtime.engines.setup import Setup

_Hashable = TypeVar("_Hashable", bound=Hashable)
_logger = logging.getLogger("tidegate.state")


class RunWarning(UserWarning):
    """What looks like a mistake in a run that goes on: all rows of an input rejected, or an input that never
    progresses.

    Examples:
        >>> import warnings
        >>> session = program.session()
        >>> session.push("Payments", [(2, None)])
        >>> with warnings.catch_warnings(record=True, action="always") as told:
        ...     report = session.step()
        >>> print(told[0].message)
        TG430 the only row of Payments in batch 1 was rejected: 1 null
        ...
    """


def due_after(rows: int) -> int:
    """How many rows are told next, once so many were: ten, a hundred, a thousand, …"""
    return int(10 ** len(str(rows)))


@dataclass(slots=True)
class _RejectionStreak:
    """The batches of which every row of a source was rejected: all since the run began, and those in a row until
    now.
    """

    total: SourceCounts = field(default_factory=SourceCounts)
    batches: int = 0
    row: SourceCounts = field(default_factory=SourceCounts)
    since: int = 0
    """The first batch of those in a row."""
    reported_rows: int = 0
    """Of so many rows in a row the last warning was."""
    untold: bool = False
    """Whether there were others before them, of which none was."""

    def after(self, report: BatchReport, counts: SourceCounts) -> bool:
        """Whether there is something to tell after a batch with these rows."""
        if not is_rejected(counts):
            self.untold, self.row, self.reported_rows = self.is_untold, SourceCounts(), 0
            return False
        if not self.row.rows_in:
            self.since = report.seq
        self.total, self.batches, self.row = self.total + counts, self.batches + 1, self.row + counts
        due = 1 if self.batches == 1 else due_after(self.reported_rows)
        if self.row.rows_in >= due:
            self.reported_rows = self.row.rows_in
        return self.reported_rows == self.row.rows_in

    @property
    def is_untold(self) -> bool:
        return self.untold or self.reported_rows < self.row.rows_in


@dataclass(slots=True)
class Notices:
    """What a run has to say of each source, once of each kind; of batches of which all rows are rejected at the first
    one, of ten rows of such in a row, a hundred and so on, and of others in the end: where rows are pushed one by one,
    each that is rejected is all of its batch. Of rows that a query sets aside it is said of the first, of ten, a
    hundred and so on.
    """

    setup: Setup
    sources: Mapping[str, Source]
    kinds: Mapping[tuple[str, str], Kind]
    """Of which type the attributes are on which the streams progress."""
    reported: set[str] = field(default_factory=set)
    rejecting: dict[str, _RejectionStreak] = field(default_factory=dict)
    set_aside: dict[str, dict[str, int]] = field(default_factory=dict)
    """Rows that were set aside since the run began, by query and reason, and files, by source."""
    over: bool = False
    """Whether the run has ended: it may be closed several times."""
    gone: set[str] = field(default_factory=set)
    """The sources, and the results by their names, whose directory was not there when it was looked at last."""
    lacking: dict[str, tuple[int, str]] = field(default_factory=dict)
    """How many files lacked a column, and the last of them, by source: all of their rows were rejected."""
    passed_over: dict[str, frozenset[object]] = field(default_factory=dict)
    """The files that are passed over, by kind and source, as they were at the last look."""
    passed_over_count: dict[str, int] = field(default_factory=dict)
    """How many of them there were since the run began, with each version of one that changed, likewise."""
    judged_at_end: bool = False
    """Whether `check_accepted` follows, for which no batch warns."""
    batches: int = 0
    bounds: Mapping[tuple[str, str], Extended] = field(default_factory=dict)
    """Up to where inputs were complete after the last batch."""
    looks: int = 0
    due: int = 1
    """At so many looks names of files are compared with patterns again: at the first, the tenth and so on, since that
    can list a whole directory.
    """

    @classmethod
    def of(cls, setup: Setup, sources: Mapping[str, Source]) -> Notices:
        kinds = {(name, a): s.schema[a].type.kind for name, s in setup.streams.items() for a in s.progress}
        return cls(setup, sources, kinds)

    def after(self, report: BatchReport, counts: Mapping[str, SourceCounts]) -> None:
        """Warns of what has shown itself by this batch; `counts` are those since the beginning."""
        self.batches += 1
        self.bounds = report.bounds
        self._tell_aside(report)
        for name, source in counts.items():
            if name in report.counts and report.counts[name].rows_in and not self.judged_at_end:
                self._judge(name, report)
            if name in report.counts and report.counts[name].rejected.get(MISSING):
                self._judge_files(name, report)
            if source.accepted and self.batches > 1 and self._is_pushed(name):  # `advance` may follow the first rows
                self._judge_progress(name, report.bounds)
        self.waited(report.bounds)

    def told(self, query: str, problem: Problem) -> None:
        """Warns of what an evaluation says of a query while it goes on."""
        self._warn(query, problem)

    def _tell_aside(self, report: BatchReport) -> None:
        """Warns of files that cannot be read, and of rows that queries set aside: tied events, and rows without a
        value.
        """
        names, program = inner_names(self.setup.plan.facts), self.setup.plan.facts.program
        set_aside = {**report.set_aside, **{name: {UNREADABLE: files} for name, files in report.unreadable.items()}}
        before, self.set_aside = self.set_aside, added(self.set_aside, set_aside)
        for query, reasons in set_aside.items():
            for reason in reasons:
                rows, earlier = self.set_aside[query][reason], before.get(query, {}).get(reason, 0)
                if not earlier or rows >= due_after(earlier):
                    many = count_of(rows, "file" if reason == UNREADABLE else "row")
                    text = f"{names.get(query, query)} set aside {many} up to batch {report.seq}: {reason}"
                    latest = [row for batch in self._kept(report.seq) for row in last_of(batch, query, reason)]
                    self._warn(
                        query,
                        Problem(
                            "TG435",
                            text,
                            because=tuple(
                                text for row in latest[-1:] for text in (*example(row), *place_of_term(row, program))
                            ),
                            hint=MENDS.get(reason, ""),
                        ),
                    )

    def asked(self, bounds: Mapping[tuple[str, str], Extended], counts: Mapping[str, SourceCounts]) -> None:
        """Warns, where a result is asked for or the run ends, of rows that were pushed and wait for a call that nobody
        has made yet.
        """
        for stream, source in counts.items():
            if source.accepted and self._is_pushed(stream):
                self._judge_progress(stream, bounds)

    def asked_too_soon(self) -> None:
        """Warns, where a result is asked for, that all input still waits for the first batch."""
        if "too soon" not in self.reported:
            self.reported.add("too soon")
            self._warn(
                "",
                Problem(
                    "TG439",
                    "no batch has run, so there are no results yet: the input waits",
                    hint="call session.step() before, or session.process() for all files",
                ),
            )

    def waited(self, bounds: Mapping[tuple[str, str], Extended]) -> None:
        """Warns of sources that can never progress, also where nothing has come of them yet: after a batch, or a look
        that has found nothing to do.
        """
        for name in self.setup.options:
            if self._goes_on(name):
                self._judge_progress(name, bounds)

    def _kept(self, since: int) -> Iterator[pa.RecordBatch]:
        """The quarantine since a batch. Where it cannot be read, a notice has no example: the batch is committed."""
        from tidegate.runtime.ingest.quarantine import kept_rows

        checkpoint = self.setup.checkpoint
        try:
            yield from kept_rows(checkpoint.store, checkpoint.manifest, since=since)
        except BaseException as error:  # Polars' panics are no `Exception`
            if not (isinstance(error, OSError | StateError) or is_out_of_memory(error)):
                raise
            _logger.warning("a notice has no example of rejected rows: %s", error)

    def _judge(self, name: str, report: BatchReport) -> None:
        """Warns if every row of this batch was rejected, and it is the first one or ends many."""
        rejecting = self.rejecting.setdefault(name, _RejectionStreak())
        if rejecting.after(report, report.counts[name]) and f"{name} ended" not in self.reported:
            first, last = rejecting.since, report.seq
            where = f" in batch {last}" if first == last else f" in batches {first} to {last}"
            self._warn(name, self._all_rejected(name, rejecting.row, self._kept(rejecting.since), where))

    def _all_rejected(
        self, name: str, counts: SourceCounts, quarantine: Iterable[pa.RecordBatch], where: str
    ) -> Problem:
        return all_rejected(self.setup.streams[name], counts, quarantine, where, self.setup.plan.facts.program)

    def _judge_files(self, name: str, report: BatchReport) -> None:
        """Warns of files that lack a column, of the first, of ten and so on, where others of the batch are fine."""
        kept = [some for batch in self._kept(report.seq) for some in rows_by_origin(batch, name, MISSING)]
        # Before the rows of this batch are those of others that were merged with them.
        before = sum(some.rows for some in kept) - report.counts[name].rejected[MISSING]
        by_origin: dict[str, list[SomeRows]] = {}
        for some in kept:
            if some.rows > before:
                by_origin.setdefault(some.origin, []).append(some.without(max(before, 0)))
            before -= some.rows
        files, last = self.lacking.get(name, (0, ""))
        for origin, parts in by_origin.items():
            if origin == last:
                continue
            files, last = files + 1, origin
            self.lacking[name] = files, last
            if is_rejected(report.counts[name]) or files not in (1, due_after(files - 1)):
                continue
            self._warn(name, file_rejected(self.setup.streams[name], parts, files))

    def ended(
        self, counts: Mapping[str, SourceCounts], advances: Mapping[tuple[str, str], Extended] = MappingProxyType({})
    ) -> None:
        """Warns, as the run ends, of batches of rejected rows of which no warning told, of inputs of which nothing was
        read though files are there, and of pushed rows that wait for a call that nobody has made; `advances` are calls
        that no batch has taken up.
        """
        if self.over:
            return
        self.over = True
        for name, source in self.sources.items():
            if name in self.setup.directories and source.bounded and self.batches > 0:
                self._judge_names(name)
        if isinstance(self.setup.checkpoint.store, MemoryStore):  # with a checkpoint a later session can say more
            self.asked({**self.bounds, **advances}, counts)
        # Whoever waits for a query on Spark ends it too, perhaps at once.
        rejecting, self.rejecting = self.rejecting, {}
        for name, streak in rejecting.items():
            if streak.is_untold and f"{name} ended" not in self.reported:
                where = f" in {streak.batches:,} batches, which brought no others,"
                self._warn(name, self._all_rejected(name, streak.total, (), where))

    def looked(self) -> None:
        """Warns of each directory that is gone, of a source or for results, whenever it goes, of files that are passed
        over, and of patterns that no file fits; called after a look at the directories.
        """
        for name, directory in self.setup.directories.items():
            self._look_at_changed(name)
            self._look_at_unnamed(name)
            if not directory.is_gone:
                self.gone.discard(name)
            elif name not in self.gone:
                self._warn(
                    name,
                    Problem(
                        "TG434",
                        f"{name}: {directory.files.directory} is gone, so no files of it are read",
                        hint="once it is there again, its new files are read; another start would fail without it",
                    ),
                )
                self.gone.add(name)
        self._look_at_results()
        self.looks += 1
        if self.looks >= self.due:
            for name, directory in self.setup.directories.items():
                if directory.files.pattern is not None:
                    self._judge_names(name)
            self.due = due_after(self.looks)

    def _look_at_changed(self, name: str) -> None:
        """Warns of files that changed after they were read and are passed over: of the first, of ten and so on."""
        new = self.setup.newly_passed_over(name)
        if self._is_due(f"changed {name}", len(new)):
            files = len(self.setup.directories[name].changed)
            many = "1 file that changed after it was" if files == 1 else f"{files:,} files that changed after they were"
            self._warn(
                name,
                Problem(
                    "TG443",
                    f"{name}: {many} read, so what changed is in no result",
                    because=(f"{new[-1]}, and is not read again",),
                    hint="files are read once, whole: put new rows into new files, and move a changed file away",
                ),
            )

    def _look_at_unnamed(self, name: str) -> None:
        """Warns of files whose names are not UTF-8, of the first, of ten and so on."""
        unnamed = sorted(self.setup.directories[name].unnamed)
        if new := self._to_tell(f"unnamed {name}", unnamed):
            many = "1 file is" if len(unnamed) == 1 else f"{len(unnamed):,} files are"
            self._warn(
                name,
                Problem(
                    "TG444",
                    f"{name}: {many} not read, as no log can have a name that is not UTF-8",
                    because=(repr(new[-1]),),
                    hint="rename such files: then they are read",
                ),
            )

    def _to_tell(self, kind: str, files: Sequence[_Hashable]) -> Sequence[_Hashable]:
        """Those of these files that are new since the last look, if they are the first ones, or make ten, a hundred and
        so on.
        """
        known = self.passed_over.get(kind, frozenset())
        new = [file for file in files if file not in known]
        self.passed_over[kind] = frozenset(files)
        return new if self._is_due(kind, len(new)) else ()

    def _is_due(self, kind: str, new: int) -> bool:
        """Whether so many new files that are passed over are the first ones, or make ten, a hundred and so on."""
        before = self.passed_over_count.get(kind, 0)
        count = self.passed_over_count[kind] = before + new
        return new > 0 and (not before or count >= due_after(before))

    def _look_at_results(self) -> None:
        """Warns of each directory for results that is gone, whenever it goes, and of those that were gone at the
        start.
        """
        for name, sink in self.setup.sinks.items():
            said = f"{name} results"
            if not is_gone(sink):
                self.gone.discard(said)
            elif said not in self.gone:
                self._warn(
                    name,
                    Problem(
                        "TG434",
                        f"{name}: {sink.directory} is gone, to which its results go",
                        hint="put it back with its files: the next results fail without it, and those that were "
                        "there are not published again",
                    ),
                )
                self.gone.add(said)
            if name in self.setup.remade and f"{name} remade" not in self.reported and isinstance(sink, ParquetSink):
                self._warn(
                    name,
                    Problem(
                        "TG434",
                        f"{name}: {sink.directory} was gone, and is made anew for results to come",
                        hint="results of batches before are not published again: put their files back, or give "
                        "the program a new checkpoint to have all of them",
                    ),
                )
                self.reported.add(f"{name} remade")

    def _judge_names(self, name: str) -> None:
        """Warns of a directory of which nothing was ever read, though files are there that nobody else reads."""
        directory, said = self.setup.directories[name], f"{name} names"
        others = [place.files for source, place in self.setup.directories.items() if source != name]
        if said in self.reported or self._was_read(name) or (path := directory.passed_over(others)) is None:
            return
        files = directory.files
        names = "names, without their folders," if os.sep in path else "names"
        read = f"{names} that fit pattern={files.pattern!r} are read" if files.pattern else "others are read"
        read += ", and none that begins with . or _"
        hint = "correct the pattern or the directory"
        if not files.deep and os.sep in path and files.reads(os.path.basename(path)):
            read = "a pattern without ** reads no folders below"
            hint = f"write {os.path.join(files.directory, '**', files.pattern or '*')!r} to read them too"
        if self.sources[name].bounded:
            hint += ", or leave the source out where there is nothing"
        self._warn(
            name,
            Problem(
                "TG436",
                f"{name}: no file of {files.directory} was read",
                because=(f"{path} is there, but {read}",),
                hint=hint,
            ),
        )
        self.reported.add(said)

    def _was_read(self, name: str) -> bool:
        """Whether a file of a source was read, by this run or one before."""
        manifest = self.setup.checkpoint.manifest
        if manifest is None:
            return False
        return name in unreadable_files(manifest) or (name in manifest.counts and manifest.counts[name].rows_in > 0)

    def advanced(self, known: Mapping[tuple[str, str], Extended], declared: Mapping[tuple[str, str], Extended]) -> None:
        """Warns of an advance to before what a stream has progressed to: progress never goes back."""
        for (name, attribute), value in declared.items():
            if value < known.get((name, attribute), -INF) and f"{name} back" not in self.reported:
                kind = self.kinds[name, attribute]
                now, then = instant_text(known[name, attribute], kind), instant_text(value, kind)
                self._say(
                    name,
                    f"{name} back",
                    Problem(
                        "TG432",
                        f"{name}.{attribute} has progressed to {now} already, so an advance to {then} changes nothing",
                        hint="progress never goes back: rows up to there would be late",
                    ),
                )

    def pushed(self, name: str, rows: Raw, known: Mapping[tuple[str, str], Extended]) -> None:
        """Warns of rows that are pushed to a stream that has ended, all of which are late, and of attributes that
        none of them has.
        """
        self._pushed_unnamed(name, rows)
        said = f"{name} ended"
        if said not in self.reported and any(
            stream == name and value == INF and (name, a) in self.kinds for (stream, a), value in known.items()
        ):
            given = name in self.sources and self.sources[name].data is not None
            self._say(
                name,
                said,
                Problem(
                    "TG433",
                    f"{name} has ended, so all rows that are pushed now are late",
                    because=("its source was given as rows or a frame, which are the whole of a stream",)
                    if given
                    else (),
                    hint='a stream whose rows are pushed has a source without rows: tg.source(None, delay="5m")'
                    if given
                    else "push them before the stream ends: finish(...) says that nothing follows",
                ),
            )

    def _judge_progress(self, name: str, bounds: Mapping[tuple[str, str], Extended]) -> None:
        """Warns of a stream of which nothing says how far it is complete, or ever will but a call."""
        if name not in self.reported and self._is_unpromised(name, bounds):
            self._warn(name, _stands_still(name, pushed=self._is_pushed(name)))
            self.reported.add(name)

    def _goes_on(self, name: str) -> bool:
        """Whether a stream's rows come by themselves, without an end."""
        source = self.sources.get(name)
        if source is None or source.bounded:
            return False
        return isinstance(source.data, Files) or bool(getattr(source.data, "isStreaming", False))

    def _is_unpromised(self, name: str, bounds: Mapping[tuple[str, str], Extended]) -> bool:
        """Whether nothing moves a stream's progress but calls, and none has."""
        options = self.setup.options[name]
        reached = [value for (stream, _), value in bounds.items() if stream == name]
        promised = options.delay or options.progress_columns or options.idle is not None or options.arrival is not None
        return not promised and bool(reached) and all(bound == -INF for bound in reached)

    def _is_pushed(self, name: str) -> bool:
        """Whether a stream's rows come by calls alone."""
        source = self.sources.get(name)
        return source is None or source.data is None

    def _pushed_unnamed(self, name: str, rows: Raw) -> None:
        """Warns once of each attribute that is NULL in all rows of a push, as none names it; rows without a value are
        rejected where they need one.
        """
        schema = self.setup.streams[name].schema
        if not rows.count or rows.unnamed >= set(schema):
            return
        said = {f"{name} lacks {a.name}": a.name for a in schema.attributes if a.nullable and a.name in rows.unnamed}
        lacking = [attribute for notice, attribute in said.items() if notice not in self.reported]
        self.reported |= said.keys()
        if lacking:
            self._warn(
                name,
                Problem(
                    "TG438",
                    f"{name}: no row of this push has {', '.join(map(repr, lacking))}, so it is NULL in all of them",
                    hint="name it in the rows, with None where it has no value",
                ),
            )

    def _say(self, stream: str, notice: str, problem: Problem) -> None:
        self.reported.add(notice)
        self._warn(stream, problem)

    def _warn(self, name: str, problem: Problem) -> None:
        """At the user's call that runs now, else where that was written which it is about, a stream or a query."""
        site = call_site(sys._getframe(1)) or self._written(name) or Site("tidegate", 0)
        written = as_written(problem, self.sources[name].site) if name in self.sources else problem
        warnings.warn_explicit(RunWarning(str(written)), None, site.file, site.line)

    def _written(self, name: str) -> Site | None:
        if name in self.sources:
            return self.sources[name].site
        queries = [query.query for query in self.setup.plan.facts.queries]
        return next((query.site for query in queries if query.name == name), queries[0].site)


def _stands_still(name: str, *, pushed: bool) -> Problem:
    if pushed:
        return Problem(
            "TG431",
            f"{name} has not progressed, so no result that depends on it is final",
            because=("rows were pushed, and nothing says how late others may come or up to where they are complete",),
            hint=(
                f'say so after a push: session.advance("{name}", ...); or sources={{"{name}": tg.source(None, '
                f'delay="5m")}}'
            ),
        )
    return Problem(
        "TG431",
        f"{name} never progresses, so no result that depends on it becomes final",
        because=("its source says neither how late rows may come nor up to where they are complete",),
        hint='give its source a delay, such as delay="5m"; or bounded=True where all files are there; '
        f'or call advance("{name}", ...)',
    )
