"""What a checkpoint holds, for people and tools: per buffer and operator its rows, their bytes, the oldest and newest,
and why they are kept.

Read from the last commit without a lock, so also while a run writes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import INF, Extended, format_instant
from tidegate.algebra.types import Kind
from tidegate.analysis.inner_queries import with_inner_names
from tidegate.analysis.report.report import kept_text
from tidegate.runtime.batch.instants import instant_text, plain_instant
from tidegate.runtime.inspect.operator_listing import (
    OperatorRows,
    check_operators,
    operator_dict,
    operator_text,
    operators_listed,
)
from tidegate.runtime.plan.layout import BufferContents, Kinds, Layout, Reader
from tidegate.runtime.plan.progress import not_of_this_program, parsed_key
from tidegate.runtime.plan.steps import one_of
from tidegate.runtime.state.checkpoint import Snapshot, inspect
from tidegate.runtime.state.codec import parse_plain
from tidegate.runtime.state.errors import MANIFEST, StateError
from tidegate.runtime.state.manifest import Manifest, set_aside_rows, unreadable_files
from tidegate.runtime.state.outputs.names import result_of
from tidegate.runtime.state.quarantine import Quarantine
from tidegate.runtime.state.segments import Segment, check_size, covering, verify
from tidegate.runtime.state.store.interface import Store

#: Readings of a checkpoint that a running writer leaves behind meanwhile, before it is taken to be damaged.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class RetentionReason:
    """Why a query, or the key of a stream, keeps rows of a buffer: its condition, its progress p, where p lets all of
    them go.

    `until[a]`: once p(a) has reached it, for any a, none of the rows that are there now is kept; ∞: not before the end.
    """

    query: str
    keep: str
    progress: Mapping[str, Extended]
    until: Mapping[str, Extended]
    kinds: Kinds

    @property
    def over(self) -> bool:
        """Whether what is left waits for garbage collection only."""
        return not self.until or any(self.progress[a] >= t for a, t in self.until.items())


@dataclass(frozen=True, slots=True)
class BufferState:
    """One buffer: what it holds of which stream, its size, its range per instant in ticks, and who keeps it."""

    held: BufferContents
    rows: int
    bytes: int
    segments: int
    range: Mapping[str, tuple[int, int]]
    kept: tuple[RetentionReason, ...]


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """How many files of results a directory has; None where it is gone."""

    directory: str
    files: int | None
    bytes: int

    def __str__(self) -> str:
        if self.files is None:
            return f"results {self.directory}: there is no such directory"
        return f"results {self.directory}: {count_of(self.files, 'file')}, {count_of(self.bytes, 'byte')}"


def _result_files(directory: str) -> ResultFiles:
    try:
        with os.scandir(directory) as entries:
            sizes = [entry.stat().st_size for entry in entries if result_of(entry.name) is not None]
    except FileNotFoundError:
        return ResultFiles(directory, None, 0)
    return ResultFiles(directory, len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class StateListing:
    """A checkpoint after its last commit; `str()` is text for people, `to_dict()` the same as JSON."""

    where: str
    snapshot: Snapshot
    layout: Layout
    buffers: tuple[BufferState, ...]
    operators: tuple[OperatorRows, ...]

    @property
    def results(self) -> tuple[ResultFiles, ...]:
        """The directories of results as they are now; a run may have published more since its last commit was read."""
        manifest = self.snapshot.manifest
        return tuple(map(_result_files, sorted(set(manifest.results.values())))) if manifest is not None else ()

    @property
    def quarantine(self) -> Quarantine:
        """The rejected rows that were set aside."""
        return Quarantine() if self.snapshot.manifest is None else self.snapshot.manifest.quarantine

    @property
    def rejected(self) -> dict[str, Mapping[str, int]]:
        """Rows that were rejected since the beginning, per source and reason."""
        counts = {} if self.snapshot.manifest is None else self.snapshot.manifest.counts
        return {name: counted.rejected for name, counted in sorted(counts.items()) if counted.rejected}

    @property
    def set_aside(self) -> dict[str, dict[str, int]]:
        """Rows that were set aside since the beginning as queries were evaluated, per query and reason."""
        return {} if self.snapshot.manifest is None else set_aside_rows(self.snapshot.manifest)

    @property
    def rows(self) -> int:
        """Rows of buffers and operators."""
        return sum(buffer.rows for buffer in self.buffers) + sum(operator.rows for operator in self.operators)

    @property
    def bytes(self) -> int:
        """Bytes of both."""
        return sum(buffer.bytes for buffer in self.buffers) + sum(operator.bytes for operator in self.operators)

    def __str__(self) -> str:
        parts = [_head(self), *map(_buffer_text, self.buffers), *map(operator_text, self.operators)]
        results = "\n".join(map(str, self.results))
        texts = (with_inner_names(part, self.layout.names) for part in (*parts, _quarantine_text(self)))
        return "\n\n".join(part for part in (*texts, results) if part)

    def to_dict(self) -> dict[str, object]:
        manifest = self.snapshot.manifest
        return {
            "checkpoint": self.where,
            "made_by": self.snapshot.meta.version,
            "batch": None if manifest is None else manifest.seq,
            "engine": None if manifest is None else f"{manifest.engine.name} {manifest.engine.version}",
            "clock": None if manifest is None else format_instant(manifest.clock),
            "pending": None if self.snapshot.pending is None else self.snapshot.pending.seq,
            "progress": [
                {"of": of, "attribute": a, "reached": plain_instant(value, Kind(kind))}
                for of, a, value, kind in _progress(self)
            ],
            "unreadable": {} if manifest is None else unreadable_files(manifest),
            "rows": self.rows,
            "bytes": self.bytes,
            "buffers": [_buffer_dict(buffer) for buffer in self.buffers],
            "operators": [operator_dict(operator) for operator in self.operators],
            "quarantine": _quarantine_dict(self.quarantine) | {"rejected": self.rejected, "set_aside": self.set_aside},
            "results": [{"directory": r.directory, "files": r.files, "bytes": r.bytes} for r in self.results],
        }


def list_state(store: Store, *, check: bool = False) -> StateListing:
    """What the checkpoint in `store` holds; `StateError` where there is none, or it is damaged.

    Of state files existence and size are checked, with `check` every byte.
    """
    for attempt in range(_TRIES):
        snapshot = inspect(store)
        try:
            files = () if snapshot.manifest is None else tuple(snapshot.manifest.state_files())
            if check:
                verify(store, files)
            else:
                for file in files:
                    check_size(store, file)
        except StateError:
            # A running writer collects files of older commits: only if nothing was committed meanwhile, one is missing.
            if attempt == _TRIES - 1 or inspect(store).manifest == snapshot.manifest:
                raise
            continue
        return _listing(store.where, snapshot)
    raise AssertionError


def _listing(where: str, snapshot: Snapshot) -> StateListing:
    stored = snapshot.meta.layout
    if isinstance(stored, dict):
        stored = {"names": {}} | stored  # checkpoints that were made before parts had names have none
    layout = parse_plain(Layout, stored, code=MANIFEST, where="the layout in meta.json")
    manifest = snapshot.manifest
    _check(layout, manifest)
    buffers = [_buffer(layout, contents, manifest) for contents in layout.buffers]
    progress = {(name, a): value for (of, name, a), value in _known(manifest).items() if of == "query"}
    stored = {} if manifest is None else manifest.kernel
    return StateListing(where, snapshot, layout, tuple(buffers), operators_listed(layout, stored, progress))


def _check(layout: Layout, manifest: Manifest | None) -> None:
    """A layout that does not fit itself or the state was not written by us."""
    known = {contents.buffer for contents in layout.buffers}
    missing = set(manifest.segments if manifest is not None else ()) - known
    promised = {
        (reader.query, a)
        for contents in layout.buffers
        for reader in contents.readers
        for view in reader.ahead
        for a in view
        if a not in layout.queries.get(reader.query, {})
    }
    missing |= set(manifest.kernel if manifest is not None else ()) - {operator.query for operator in layout.operators}
    promised |= {
        (operator.query, operator.time)
        for operator in layout.operators
        if operator.time not in layout.queries.get(operator.query, {})
    }
    every = [*layout.inputs.values(), *layout.queries.values(), *(contents.instants for contents in layout.buffers)]
    kinds = {kind for some in every for kind in some.values()} | {operator.kind for operator in layout.operators}
    kinds -= {kind.value for kind in Kind}
    if missing or promised or kinds:
        raise StateError(
            MANIFEST, f"the layout in meta.json does not fit: {min(map(str, (*missing, *promised, *kinds)))}"
        )
    check_operators(layout, {} if manifest is None else manifest.kernel)


def _buffer(layout: Layout, contents: BufferContents, manifest: Manifest | None) -> BufferState:
    segments = () if manifest is None else manifest.segments.get(contents.buffer, ())
    range_ = _range(contents.instants, segments)
    progress = _known(manifest)
    kept = [_kept(layout, reader, range_, progress) for reader in contents.readers]
    if contents.key:
        kept.append(_kept_for_key(layout, contents, range_, progress))
    rows, size = sum(s.rows for s in segments), sum(s.bytes for s in segments)
    return BufferState(contents, rows, size, len(segments), range_, tuple(kept) if segments else ())


def _kept_for_key(
    layout: Layout,
    contents: BufferContents,
    range_: Mapping[str, tuple[int, int]],
    progress: Mapping[tuple[str, str, str], Extended],
) -> RetentionReason:
    """Rows are remembered until they are late by one of the progressing attributes of the key."""
    kinds = {a: kind for a, kind in layout.inputs.get(contents.stream, {}).items() if a in contents.key}
    reached = {a: progress.get(("input", contents.stream, a), -INF) for a in kinds}
    until = {a: range_[a][1] if a in range_ else INF for a in kinds}
    return RetentionReason(f"the key of {contents.stream}", "a row is not late", reached, until, kinds)


def _range(instants: Iterable[str], segments: Sequence[Segment]) -> dict[str, tuple[int, int]]:
    covered = covering([segment.bounds for segment in segments])
    return {name: covered[name] for name in instants if name in covered}


def _kept(
    layout: Layout,
    reader: Reader,
    range_: Mapping[str, tuple[int, int]],
    progress: Mapping[tuple[str, str, str], Extended],
) -> RetentionReason:
    """The newest row decides: in each view the least `x + d` over its columns, over the views the greatest."""
    until: dict[str, Extended] = {}
    for view in reader.ahead:
        for a, columns in view.items():
            reach = min((range_[x][1] + d for x, d in columns.items() if x in range_), default=INF)
            until[a] = max(reach, until.get(a, -INF))
    of_query = {a: value for (kind, name, a), value in progress.items() if (kind, name) == ("query", reader.query)}
    reached = {a: of_query.get(a, -INF) for a in until}
    return RetentionReason(reader.query, reader.keep, reached, until, layout.queries[reader.query])


def _known(manifest: Manifest | None) -> dict[tuple[str, str, str], Extended]:
    """Progress as the manifest has it, by (input or query, name, attribute)."""
    known: dict[tuple[str, str, str], Extended] = {}
    for key, value in (manifest.progress if manifest is not None else {}).items():
        match parsed_key(key):
            case [str(kind), str(name), str(attribute)]:
                known[kind, name, attribute] = value
            case _:
                raise not_of_this_program(f"progress of {key!r:.200}")
    return known


def _progress(listing: StateListing) -> list[tuple[str, str, Extended, str]]:
    known = _known(listing.snapshot.manifest)
    named = (("input", listing.layout.inputs), ("query", listing.layout.queries))
    return [
        (name, a, known.get((of, name, a), -INF), kind)
        for of, all_kinds in named
        for name, kinds in all_kinds.items()
        for a, kind in kinds.items()
    ]


def _head(listing: StateListing) -> str:
    manifest, pending = listing.snapshot.manifest, listing.snapshot.pending
    if manifest is None:
        lines = [f"checkpoint {listing.where}: no batch is committed yet"]
    else:
        engine = f"{manifest.engine.name} {manifest.engine.version}"
        lines = [f"checkpoint {listing.where}: after batch {manifest.seq} by {engine}"]
        lines.append(f"  clock       {format_instant(manifest.clock)}")
        aside = sorted(unreadable_files(manifest).items())
        lines += [f"  set aside   {count_of(files, 'file')} of {name}: unreadable" for name, files in aside]
    if pending is not None:
        lines.append(f"  pending     batch {pending.seq} was begun and is not committed")
    names = listing.layout.names
    rows = [(f"{names.get(of, of)}.{a}", instant_text(value, Kind(kind))) for of, a, value, kind in _progress(listing)]
    width = max((len(name) for name, _ in rows), default=0)
    lines += [f"  {'' if i else 'progress':<12}{name.ljust(width)}  {text}" for i, (name, text) in enumerate(rows)]
    places = count_of(len(listing.buffers), "buffer")
    if listing.operators:
        places += f" and {count_of(len(listing.operators), 'operator')}"
    lines.append(f"  held        {count_of(listing.rows, 'row')} in {places}, {count_of(listing.bytes, 'byte')}")
    return "\n".join(lines)


def _buffer_text(buffer: BufferState) -> str:
    contents = buffer.held
    what = one_of(contents.holds)
    head = f"buffer {contents.buffer}: {count_of(buffer.rows, what)} of {contents.stream}"
    if buffer.rows:
        head += f", {count_of(buffer.bytes, 'byte')} in {count_of(buffer.segments, 'segment')}"
    lines = [head]
    for name, (low, high) in buffer.range.items():
        kind = contents.instants[name]
        lines += [
            f"  oldest      {name} {instant_text(low, Kind(kind))}",
            f"  newest      {name} {instant_text(high, Kind(kind))}",
        ]
    lines += [f"  with table  {name}: {stored}" for name, stored in contents.tables.items()]
    if contents.key:
        lines.append(
            f"  kept        until they are late, since no other row may repeat their {', '.join(contents.key)}"
        )
    for kept in buffer.kept:
        if not contents.key:
            lines.append(f"  kept        for {kept.query} {kept_text(kept.keep)}")
        lines += [
            f"              p({a}) is {instant_text(value, Kind(kept.kinds[a]))}" for a, value in kept.progress.items()
        ]
        lines.append(f"              {_until_text(kept)}")
    return "\n".join(lines)


def _quarantine_text(listing: StateListing) -> str:
    kept = listing.quarantine
    if kept == Quarantine() and not listing.rejected and not listing.set_aside:
        return ""
    head = f"quarantine: {count_of(kept.rows, 'row')}"
    lines = [head + (f", {count_of(kept.bytes, 'byte')} in {count_of(kept.count, 'file')}" if kept.count else "")]
    if (oldest := kept.oldest) is not None and (newest := kept.newest) is not None:
        lines += [f"  oldest      {format_instant(oldest)}, by the clock", f"  newest      {format_instant(newest)}"]
    if kept.dropped.until is not None:
        what = f"{count_of(kept.dropped.rows, 'row')}, {count_of(kept.dropped.bytes, 'byte')}"
        lines.append(f"  dropped     {what}, up to {format_instant(kept.dropped.until)}")
    for what, counts in (("rejected", listing.rejected), ("set aside", listing.set_aside)):
        for i, (name, reasons) in enumerate(counts.items()):
            counted = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
            text = ", ".join(f"{rows:,} {reason}" for reason, rows in counted)
            lines.append(f"  {'' if i else what:<12}{name}: {text}, since the beginning")
    if kept.count:
        lines.append(f"  to see      tidegate quarantine {shlex.quote(listing.where)}")
    return "\n".join(lines)


def _quarantine_dict(kept: Quarantine) -> dict[str, object]:
    def instant(clock: int | None) -> str | None:
        return None if clock is None else format_instant(clock)

    return {
        "rows": kept.rows,
        "bytes": kept.bytes,
        "files": kept.count,
        "oldest": instant(kept.oldest),
        "newest": instant(kept.newest),
        "dropped": {
            "rows": kept.dropped.rows,
            "bytes": kept.dropped.bytes,
            "files": kept.dropped.files,
            "until": instant(kept.dropped.until),
        },
    }


def _until_text(kept: RetentionReason) -> str:
    if kept.over:
        return "which needs none of it any more"
    known = [f"p({a}) reaches {instant_text(t, Kind(kept.kinds[a]))}" for a, t in kept.until.items() if t != INF]
    return f"until {' or '.join(known)}" if known else "until its input ends"


def _buffer_dict(state: BufferState) -> dict[str, object]:
    kinds = state.held.instants
    return {
        "buffer": state.held.buffer,
        "stream": state.held.stream,
        "holds": state.held.holds,
        "rows": state.rows,
        "bytes": state.bytes,
        "segments": state.segments,
        **({"key": list(state.held.key)} if state.held.key else {}),
        **({"tables": dict(state.held.tables)} if state.held.tables else {}),
        "oldest": {a: plain_instant(low, Kind(kinds[a])) for a, (low, _) in state.range.items()},
        "newest": {a: plain_instant(high, Kind(kinds[a])) for a, (_, high) in state.range.items()},
        "kept": [
            {
                "query": kept.query,
                "while": kept.keep,
                "progress": {a: plain_instant(v, Kind(kept.kinds[a])) for a, v in kept.progress.items()},
                "until": {a: plain_instant(t, Kind(kept.kinds[a])) for a, t in kept.until.items()},
                "needed": not kept.over,
            }
            for kept in state.kept
        ],
    }
