"""A batch under construction. Its files carry the name of the attempt, and count all together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.codec import Extended, Json
from tidegate.runtime.state.errors import DATA, OUTPUT, StateError, storage_errors
from tidegate.runtime.state.inputs.positions import Offer, PositionLog, SourceFile
from tidegate.runtime.state.manifest import Intent, Manifest, OperatorFiles, SourceCounts, SparkCommit, StagedOutput
from tidegate.runtime.state.outputs.names import output_name
from tidegate.runtime.state.outputs.staging import (
    GATHERED,
    Sink,
    concatenated,
    is_inside,
    read_outputs,
    target_of,
)
from tidegate.runtime.state.quarantine import Quarantine, Retention, appended, set_aside
from tidegate.runtime.state.rejects.file_tables import CLOCK
from tidegate.runtime.state.segments import (
    FANOUT,
    Segment,
    append_segment,
    check_size,
    new_path,
    plan_compaction,
    read_segments,
    replaced,
    write_segment,
)
from tidegate.runtime.state.store.interface import FileRef, Store
from tidegate.runtime.state.store.packs import LARGEST_PART, PackWriter, file_of, is_for_a_pack, pack_of

#: So many rejected rows are not held until the commit.
_MANY: Final = 1 << 16


class Batch:
    """One attempt at batch `seq`, from its intent to `commit`. Made by `Checkpoint.begin`.

    `intent` says what to read; when `replayed` is true it is the recorded one and holds instead of what was offered.
    Workers get `seq` and `attempt` for `write_segment_file`.
    """

    def __init__(
        self,
        store: Store,
        intent: Intent,
        attempt: str,
        replayed: bool,
        fingerprint: str,
        previous: Manifest | None,
        known: frozenset[str],
        log: PositionLog,
        sinks: Mapping[str, Sink],
        keep: Retention,
        finish: Callable[[Batch, Manifest], None],
        waiting: dict[str, Any],
    ) -> None:
        """`known` are the paths of what `previous` says that this batch needs. `waiting` has the tables of results in
        packs that this process has written, by their paths; this batch adds its own.
        """
        self.intent = intent
        self.attempt = attempt
        self.replayed = replayed
        self._store = store
        self._fingerprint = fingerprint
        self._previous = previous
        self._known = known
        self._log = log
        self._sinks = sinks
        self._keep = keep
        self._finish = finish
        self._waiting = waiting
        self._pack = PackWriter.of(intent.seq, attempt)
        self._packing = Lock()
        self._outputs: list[StagedOutput] = []
        self._gathering: dict[str, list[Any]] = {}
        #: Files that its manifest makes durable before it appears.
        self.hasty: list[str] = []
        self._ended: set[str] = set()
        """Queries whose results wait no more: they became a file of this batch."""
        self._rejected: list[Any] = []
        self._set_aside: list[Segment] = []
        self._parts: dict[str, int] = {}
        self._written: list[str] = []
        self._read: dict[tuple[str, str], SourceFile] = {}

    @property
    def seq(self) -> int:
        return self.intent.seq

    @property
    def read(self) -> Offer:
        """What the batch was to read, with files in the versions in which it did."""
        return self.intent.offer.as_read(self._read)

    def read_as(self, source: str, files: Iterable[SourceFile]) -> None:
        """Files of a source as they were when they were opened. In this version they count as read."""
        self._read |= {(source, file.path): file for file in files}

    def write_segment(self, buffer_id: str, table: Any, temporal_columns: Sequence[str], *, shard: int = 0) -> Segment:
        """Write rows as a new segment of a buffer; name it in `commit`."""
        segment = write_segment(self._store, buffer_id, table, temporal_columns, self.seq, self.attempt, shard=shard)
        self._written.append(segment.path)
        self._store.failpoints.hit("batch-after-segment")
        return segment

    def pack_segment(self, table: Any, described: Segment) -> Segment | None:
        """Write few rows as a new segment, a part of the batch's pack, which can be read after the commit; None for
        many rows.

        `described` says what there is to say of the rows: their bounds and their columns.
        """
        if not self._packs(table):
            return None
        file = self._pack.add(table.replace_schema_metadata(None))
        self._store.failpoints.hit("batch-after-segment")
        return replace(described, path=file.path, bytes=file.bytes, checksum=file.checksum, batch=self.seq)

    def _packs(self, table: Any) -> bool:
        return self._store.packs and self._pack.takes(table)

    def append(
        self,
        buffer_id: str,
        segments: Sequence[Segment],
        table: Any,
        temporal_columns: Sequence[str],
        *,
        shard: int = 0,
    ) -> tuple[Segment, ...]:
        """The buffer's segments after adding the rows of `table` and compacting; rows that are merged at once are
        written once.
        """
        live = append_segment(
            self._store, buffer_id, segments, table, temporal_columns, self.seq, self.attempt, shard=shard
        )
        self._store.failpoints.hit("batch-after-segment")
        return live

    def compact(
        self, buffer_id: str, segments: Sequence[Segment], temporal_columns: Sequence[str], *, fanout: int = FANOUT
    ) -> tuple[Segment, ...]:
        """The buffer's segments after merging what `plan_compaction` says."""
        live = tuple(segments)
        for group in plan_compaction(segments, fanout=fanout):
            table = read_segments(self._store, group)
            merged = self.write_segment(buffer_id, table, temporal_columns, shard=group[0].shard)
            live = replaced(live, group, merged)
            self._written += [segment.path for segment in group if segment.batch == self.seq]
        return live

    def write_state(self, operator: str, table: Any) -> FileRef:
        """Write a table of an operator's own state; name it in a `OperatorFiles`. It can be read after the commit.

        Several threads may do so.
        """
        with self._packing:
            if self._packs(table):
                return self._pack.add(table)
        with storage_errors(f"writing state of {operator!r}"):
            if self._store.packs and is_for_a_pack(table):
                path = PackWriter.of(self.seq, self.attempt).path
                self._written.append(path)
                data, file = pack_of(path, table)
                self._store.write_bytes(path, data)
                return file
            path = new_path("kernel", operator, self.seq, self.attempt)
            self._written.append(path)
            return self._store.write_table(path, table)

    def stage_output(self, query: str, table: Any) -> None:
        """Write result rows aside; they are published when the batch is committed.

        Few rows of a query without a sink are gathered in packs instead, until they are worth a file.
        """
        if self._store.packs and is_inside(self._sinks.get(query)):
            self._gathering.setdefault(query, []).append(table)
            self._store.failpoints.hit("batch-after-stage")
        else:
            self._stage_table(query, table)

    def _stage_table(self, query: str, table: Any) -> None:
        path = self.output_path(query)
        with storage_errors(f"staging results of {query!r}"):
            file = self._store.write_table(path, table, hasty=True)
        self.hasty.append(path)
        self._stage(query, file, table.num_rows)

    def _gathered(self) -> dict[str, tuple[StagedOutput, ...]]:
        """The results that wait in packs from now on, per query; those that are many are staged as one file."""
        before = {} if self._previous is None else self._previous.gathered
        before = {query: waiting for query, waiting in before.items() if query not in self._ended}
        gathered = dict(before)
        for query, tables in self._gathering.items():
            waiting, new = before.get(query, ()), concatenated(tables)
            packs = self._packs(new)
            if len(waiting) == GATHERED or not packs:
                new, waiting = concatenated([*self._read_waiting(waiting), new]).combine_chunks(), ()
                packs = self._packs(new)
            if packs:
                output = StagedOutput(query, self._pack.add(new), new.num_rows, self._output_name(query))
                gathered[query] = (*waiting, output)
                if new.get_total_buffer_size() <= LARGEST_PART:  # else it is a small part of a large one
                    self._waiting[output.file.path] = new
            else:
                self._stage_table(query, new)
                gathered.pop(query, None)
        return gathered

    def _read_waiting(self, waiting: Sequence[StagedOutput]) -> Iterator[Any]:
        """The tables of results in packs, from memory where this process has written them."""
        for output in waiting:
            known = self._waiting.get(output.file.path)
            yield from (known,) if known is not None else read_outputs(self._store, [output])

    def _output_name(self, query: str) -> str:
        part = self._parts.get(query, 0)
        self._parts[query] = part + 1
        return output_name(self.seq, query, part)

    def output_path(self, query: str) -> str:
        """A fresh path for a file of results that another process writes; see `adopt_output`."""
        return new_path("staging", query, self.seq, self.attempt)

    def adopt_output(self, query: str, file: FileRef, rows: int) -> StagedOutput:
        """Stage a durable file that a worker wrote at an `output_path`; only its size is looked at here.

        Results of the query that wait in packs become a file before it, so that rows stay in the order of batches.
        """
        check_size(self._store, file)
        waiting = () if self._previous is None else self._previous.gathered.get(query, ())
        if waiting and query not in self._ended:
            self._ended.add(query)
            self._stage_table(query, concatenated(list(self._read_waiting(waiting))))
        return self._stage(query, file, rows)

    def quarantine(self, table: Any) -> None:
        """Set rejected rows aside: they count when the batch is committed. Many are written now, few with the
        commit.
        """
        import pyarrow as pa

        self._rejected.append(table)
        if sum(rows.num_rows for rows in self._rejected) >= _MANY:
            with storage_errors("writing quarantined rows"):
                many = pa.concat_tables(self._rejected)
                self._set_aside.append(set_aside(self._store, many, self.intent.clock, self.seq, self.attempt))
            self._rejected.clear()
        self._store.failpoints.hit("batch-after-stage")

    def adopt_quarantine(self, segment: Segment) -> None:
        """Set aside a durable file of rejected rows that a worker wrote with `write_segment`, in the area of the
        quarantine.
        """
        check_size(self._store, segment.file)
        clock = self.intent.clock
        self._set_aside.append(replace(segment, bounds={CLOCK: (clock, clock)}))
        self._store.failpoints.hit("batch-after-stage")

    def unstage(self) -> None:
        """Forgets what was packed, staged and set aside. The batch is evaluated again."""
        self._written += [output.file.path for output in self._outputs]
        self._written += [segment.path for segment in self._set_aside]
        self._pack = PackWriter.of(self.seq, self.attempt)
        self._gathering.clear()
        self._ended.clear()
        self.hasty.clear()
        self._outputs.clear()
        self._rejected.clear()
        self._set_aside.clear()
        self._parts.clear()

    def commit(
        self,
        *,
        segments: Mapping[str, Sequence[Segment]],
        progress: Mapping[str, Extended],
        counts: Mapping[str, SourceCounts],
        operators: Mapping[str, OperatorFiles] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> Manifest:
        """Make this batch the state, publish what it staged, and collect garbage.

        `segments`, `progress`, `operators` and `extra` are the whole new state, `counts` those of this batch. When it
        returns, the batch is durable and published. When it raises, the checkpoint must be opened again to learn
        whether it counts.
        """
        store, previous, offer = self._store, self._previous, self.read
        self._check_known(segments, operators or {})
        total = dict(previous.counts) if previous is not None else {}
        for source, batch_counts in counts.items():
            total[source] = total.get(source, SourceCounts()) + batch_counts
        spark = dict(previous.spark) if previous is not None else {}
        if offer.spark is not None:
            spark[offer.spark.query_id] = SparkCommit(offer.spark.batch_id, offer.fingerprint)
        gathered = self._gathered()
        self._write_pack()
        store.failpoints.hit("commit-before-positions")
        positions = self._log.appended(offer, self.seq, self.attempt)
        quarantine = self._quarantined()
        store.failpoints.hit("commit-after-quarantine")
        manifest = Manifest(
            seq=self.seq,
            intent=self.intent.id,
            attempt=self.attempt,
            fingerprint=self._fingerprint,
            mode=self.intent.mode,
            clock=self.intent.clock,
            engine=self.intent.engine,
            spark_batch=offer.spark,
            segments={buffer: tuple(parts) for buffer, parts in segments.items()},
            kernel=dict(operators or {}),
            outputs=tuple(self._outputs),
            gathered=gathered,
            quarantine=quarantine,
            results={q: s for q, s in self._sinks.items() if isinstance(s, str) and s.startswith("/")},
            progress=dict(progress),
            counts=total,
            batch_counts=dict(counts),
            positions=positions,
            spark=spark,
            extra=dict(extra or {}),
        )
        self._finish(self, manifest)
        return manifest

    def _write_pack(self) -> None:
        if self._pack.is_empty:
            return
        with storage_errors(f"writing {self._pack.path}"):
            self._store.write_bytes(self._pack.path, bytes(self._pack.data), hasty=True)
        self._written.append(self._pack.path)
        self.hasty.append(self._pack.path)
        self._store.failpoints.hit("commit-after-pack")

    def unnamed(self, named: frozenset[str]) -> list[str]:
        """Files that this batch wrote and did not name in the end, because it merged or replaced them."""
        return [path for path in self._written if path not in named]

    def _quarantined(self) -> Quarantine:
        """The quarantine with the rows that this batch rejected, with few files merged."""
        before = Quarantine() if self._previous is None else self._previous.quarantine
        clock = self.intent.clock
        written, tables = self._set_aside, self._rejected
        self._written += [segment.path for segment in written]
        return appended(self._store, before, written, tables, self._keep, clock, self.seq, self.attempt)

    def _stage(self, query: str, file: FileRef, rows: int) -> StagedOutput:
        output = StagedOutput(query, file, rows, self._output_name(query))
        sink = self._sinks.get(query)
        if sink is None:
            raise InternalError("TG590", f"query {query!r} has no sink")
        if isinstance(sink, str):
            target = target_of(sink, output.name)
            with storage_errors(f"looking for {target}"):
                there = self._store.target_size(target)
            if there is not None:
                raise StateError(
                    OUTPUT,
                    f"{target} exists already",
                    hint="another checkpoint, or a later state of this one, wrote it: use an empty output directory",
                )
        self._outputs.append(output)
        self._store.failpoints.hit("batch-after-stage")
        return output

    def _check_known(self, segments: Mapping[str, Sequence[Segment]], operators: Mapping[str, OperatorFiles]) -> None:
        """Checks that no named file was collected meanwhile or is incomplete."""
        known = self._known
        new = [segment.file for parts in segments.values() for segment in parts if segment.path not in known]
        new += [file for state in operators.values() for file in state.files if file.path not in known]
        for file in new:
            if file_of(file.path) == self._pack.path:
                continue
            if not file.path.rpartition("/")[2].startswith(f"{self.seq:010d}-"):
                raise InternalError(
                    "TG590", f"{file.path} is neither in the last manifest nor written by batch {self.seq}"
                )
            with storage_errors(f"looking for {file.path}"):
                try:
                    size = self._store.size(file.path)
                except FileNotFoundError:
                    raise StateError(
                        DATA,
                        f"{file.path} was written by this batch and is gone",
                        hint="see that nothing else deletes files of the checkpoint, then start the run again",
                    ) from None
            if size != file.bytes:
                raise InternalError("TG590", f"{file.path} has not the size that its writer told")
