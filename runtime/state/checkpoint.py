"""A checkpoint: opening, recovery, and the order of steps that makes every batch count once."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.codec import Json, Texts
from tidegate.runtime.state.errors import (
    LOCATION,
    MANIFEST,
    MEMORY,
    PROGRAM,
    REPLAY,
    WRITER,
    StateError,
    memory_errors,
    storage_errors,
)
from tidegate.runtime.state.inputs.positions import ChangedFile, Offer, PositionLog, Positions, SourceFile, SparkBatch
from tidegate.runtime.state.inputs.put_away import PuttingAway, put_away
from tidegate.runtime.state.intent import pending_intent, record_intent, replays
from tidegate.runtime.state.leftovers import RETAINED, Retained, delete_leftovers, delete_retired
from tidegate.runtime.state.manifest import (
    Engine,
    Intent,
    Manifest,
    away_path,
    decode_away,
    decode_manifest,
    encode_away,
    encode_manifest,
    intent_path,
    manifest_path,
    marker_path,
    sequence_of,
)
from tidegate.runtime.state.meta import Meta, create_or_check, read_meta
from tidegate.runtime.state.outputs.compaction import hold, hold_compaction
from tidegate.runtime.state.outputs.staging import Sink, check_not_ahead, publish_outputs
from tidegate.runtime.state.quarantine import Retention
from tidegate.runtime.state.segments import check_size, verify
from tidegate.runtime.state.store.interface import Lock, Store

_SWEEP_EVERY = 64
_logger = logging.getLogger("tidegate.state")


@dataclass(frozen=True, slots=True)
class UnreadOffer:
    """The part of an offer to read: nothing if its batch is committed (`skip`), else the files not yet consumed.

    `changed` lists consumed files that are there again in another version; they are not in `offer`.
    """

    skip: bool
    offer: Offer
    changed: tuple[ChangedFile, ...] = ()


class Checkpoint:
    """The state of one run of one program, with the right to write it. Use as a context manager, or `close` it.

    `manifest` is the last commit, None before the first; `pending` the intent of a batch that was begun and not
    committed.
    """

    def __init__(self, store: Store, meta: Meta, sinks: Mapping[str, Sink], keep: Retention, lock: Lock) -> None:
        self.store = store
        self.meta = meta
        self.manifest: Manifest | None = None
        self.pending: Intent | None = None
        self.swept = 0
        self._sinks = dict(sinks)
        self._keep = keep
        self._held: list[int] = []
        self._lock = lock
        self._retained: list[Retained] = []
        self._texts = Texts()
        self._log = PositionLog(store, Positions())
        self._batch: Batch | None = None
        #: The tables of results that wait in packs, by their paths: those that this process has written.
        self._waiting: dict[str, Any] = {}
        self._usable = False
        self._putting_away: dict[str, PuttingAway] = {}

    @classmethod
    def open(
        cls,
        store: Store,
        fingerprint: str,
        description: Mapping[str, Any],
        *,
        sinks: Mapping[str, Sink] | None = None,
        quarantine_keep: Retention | None = None,
        version: str = "",
        layout: Json = None,
        check: Literal["full", "size"] = "full",
        putting_away: Mapping[str, PuttingAway] | None = None,
    ) -> Checkpoint:
        """Open or make the checkpoint in `store`, and bring it to the state after its last commit.

        `description` says in readable form what `fingerprint` stands for: schemas, program text, number of shards;
        `layout` is kept for tools. `sinks` has an absolute output directory or a function per query, `quarantine_keep`
        says which rejected rows are kept (all, unless it is given). `check` is how far state files
        are compared with the manifest: byte for byte, or by size. `putting_away` says per source what becomes of
        its files once they were read. Refuses with TG501 (another program), TG502 (format), TG503 (another writer),
        TG504 (damaged manifest), TG505 (damaged state), TG507 (damaged intent), TG508 (output lost).
        """
        read_meta(store)  # refuse what is no checkpoint before a lock file is put there
        with storage_errors(f"locking {store.where}"):
            lock = store.lock()
        try:
            with memory_errors(f"opening {store.where}"):
                meta = create_or_check(store, fingerprint, description, version, layout)
                checkpoint = cls(store, meta, sinks or {}, quarantine_keep or Retention(), lock)
                checkpoint._putting_away = dict(putting_away or {})
                checkpoint._recover(check)
        except BaseException:
            lock.release()
            raise
        return checkpoint

    @property
    def next_seq(self) -> int:
        return 1 if self.manifest is None else self.manifest.seq + 1

    @property
    def positions(self) -> PositionLog:
        """The positions of the sources: what was consumed."""
        return self._log

    def admit(self, offer: Offer) -> UnreadOffer:
        """Decide what of `offer` is still to be read; `StateError` TG506 if it does not continue this checkpoint.

        A Spark batch is skipped only if it is the last that its query committed here and offers the same. A later one
        must be the next; the first one of a query new to this checkpoint must be number 0. Files consumed before are
        taken out; sources without files must go on with their reader.
        """
        self._check_usable()
        spark = offer.spark
        if spark is not None:
            last = self.manifest.spark.get(spark.query_id) if self.manifest is not None else None
            if last is not None and spark.batch_id == last.batch_id:
                if offer.fingerprint == last.offer:
                    return UnreadOffer(True, replace(offer, files={}, offsets={}))
                raise StateError(
                    REPLAY,
                    f"{spark} is committed here, but with other input than it has now",
                    hint=(
                        "input files or Spark's checkpoint were changed meanwhile; restore them, or give Spark a "
                        "new checkpoint"
                    ),
                )
            expected = 0 if last is None else last.batch_id + 1
            if spark.batch_id != expected:
                state = "never committed here" if last is None else f"committed here up to batch {last.batch_id}"
                raise StateError(
                    REPLAY,
                    f"{spark} does not follow: this query was {state}",
                    hint="this checkpoint and Spark's are of different age: restore both together, or give Spark "
                    "a new checkpoint (files read before are known and will not be read twice)",
                )
        self._log.check_reader(offer)
        files, changed = self._log.unconsumed(offer.files)
        return UnreadOffer(False, replace(offer, files=files), tuple(changed))

    def clock(self, now: int, spark: SparkBatch) -> int:
        """The clock of the batch that a Spark batch becomes: as it was recorded, or now, and never before the last
        one.
        """
        if self.pending is not None and self.pending.offer.spark == spark:
            return self.pending.clock
        return now if self.manifest is None else max(now, self.manifest.clock)

    def begin(self, clock: int, offer: Offer, *, engine: Engine, mode: str = "batch") -> Batch:
        """Start the next batch on an admitted offer, or the recorded one again if this is its replay (see
        `Batch.intent`).

        The clock never goes back from one batch to the next.
        """
        self._check_usable()
        if not self._lock.held():
            raise self._taken_over()
        pending = self.pending
        replayed = pending is not None and replays(pending, offer, mode)
        if pending is None or not replayed:
            self._log.check_names(offer)
            self.store.failpoints.hit("batch-before-intent")
            if pending is not None:
                self.discard_intent()
            clock = clock if self.manifest is None else max(clock, self.manifest.clock)
            pending = record_intent(self.store, self.next_seq, offer, clock, mode, engine)
            self.pending = pending
            self.store.failpoints.hit("batch-after-intent")
        self._batch = Batch(
            self.store,
            pending,
            uuid.uuid4().hex[:12],
            replayed,
            self.meta.fingerprint,
            self.manifest,
            self._retained[-1].state if self._retained else frozenset(),
            self._log,
            self._sinks,
            self._keep,
            self._finish,
            self._waiting,
        )
        return self._batch

    def reads(self, directory: str) -> None:
        """Keeps compaction from exchanging the directory until closed, since its files are known by name."""
        if (descriptor := hold(directory)) is not None:
            self._held.append(descriptor)

    def discard_intent(self) -> None:
        """Forgets a batch that was begun and not committed. Nobody can have seen its effects."""
        self._check_usable()
        if self.pending is not None:
            with storage_errors("discarding an intent"):
                self.store.delete(intent_path(self.pending.seq))
            self.pending, self._batch = None, None

    def close(self) -> None:
        """Give up the right to write. A batch that was begun stays recorded as pending."""
        self._usable = False
        while self._held:
            os.close(self._held.pop())
        self._lock.release()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self, check: Literal["full", "size"]) -> None:
        store = self.store
        self._retained = [Retained.of(manifest) for manifest in retained_manifests(store)]
        self.manifest = manifest = self._retained[-1].manifest if self._retained else None
        if manifest is not None and manifest.fingerprint != self.meta.fingerprint:
            raise StateError(PROGRAM, f"{manifest_path(manifest.seq)} belongs to another program than meta.json")
        self.pending = pending_intent(store, self.next_seq)
        if self.pending is None:
            with storage_errors("removing the record of a batch that was lost when the machine died"):
                if store.exists(intent_path(self.next_seq)):
                    store.delete(intent_path(self.next_seq))
        check_not_ahead(store, self._sinks, self.next_seq - 1)
        if manifest is not None:
            if check == "full":
                verify(store, manifest.state_files())
            else:
                for file in manifest.state_files():
                    check_size(store, file)
            self._log = PositionLog(store, manifest.positions)
            if not store.exists(marker_path(manifest.seq)):
                store.failpoints.hit("recover-before-publish")
                self._publish(manifest, recovering=True)
        left = self._left(seq := self.next_seq - 1)
        if self._putting_away or left:
            self._log.put_away(self._putting_away, left)
            self._put_away(seq, {}, left)
        store.failpoints.hit("recover-before-sweep")
        with storage_errors("removing leftovers"):
            # Without locks another run may be writing what looks like a leftover of the next batch.
            self.swept = delete_leftovers(store, self._retained, running=not self._lock.guaranteed)
        self._usable = True

    def _finish(self, batch: Batch, manifest: Manifest) -> None:
        """Writes the manifest, publishes and collects, in this order. `Batch.commit` calls it."""
        self._check_usable()
        if batch is not self._batch:
            raise InternalError("TG590", f"batch {batch.seq} is over, or another attempt at it has begun")
        store = self.store
        self._usable, self._batch = False, None  # until the end is reached, only opening again can tell what counts
        if not self._lock.held():
            raise self._taken_over()
        store.failpoints.hit("commit-before-manifest")
        with storage_errors(f"committing batch {manifest.seq}"):
            content = encode_manifest(manifest, self._texts)
            if not store.create_exclusive(manifest_path(manifest.seq), content, after=batch.hasty):
                raise StateError(
                    WRITER,
                    f"another run committed batch {manifest.seq} in {store.where}",
                    hint="run only one at a time on a checkpoint; this one changed nothing",
                )
        store.failpoints.hit("commit-after-manifest")
        read = batch.read
        self._log.accept(read, manifest.positions)
        self.manifest, self.pending = manifest, None
        now = Retained.of(manifest)
        self._retained.append(now)
        self._waiting = {path: table for path, table in self._waiting.items() if path in now.state}
        self._publish(manifest)
        self._put_away(manifest.seq, read.files, {})
        store.failpoints.hit("commit-before-gc")
        try:
            self._collect(batch.unnamed(now.files))
        except (OSError, MemoryError) as error:  # the batch is done; what stays behind is swept at the next start
            _logger.warning("collecting garbage after batch %d failed: %s", manifest.seq, error)
        store.failpoints.hit("commit-after-gc")
        self._usable = True

    def _publish(self, manifest: Manifest, *, recovering: bool = False) -> None:
        directories = {sink for o in manifest.outputs if isinstance(sink := self._sinks.get(o.query), str)}
        with ExitStack() as locks:
            for directory in sorted(directories):
                if directory.startswith("/"):
                    locks.enter_context(hold_compaction(directory))
            publish_outputs(self.store, manifest, self._sinks, recovering=recovering)
        self.store.failpoints.hit("commit-before-marker")
        if manifest.outputs:
            with storage_errors("noting that outputs are published"):
                self.store.note(marker_path(manifest.seq))

    def _left(self, seq: int) -> Mapping[str, tuple[SourceFile, ...]]:
        """The files that are known to have left since a batch; none where nothing of the record was left when the
        machine died.
        """
        path = away_path(seq)
        with storage_errors(f"reading {path}"):
            data = self.store.read_bytes(path) if self.store.exists(path) else b""
        return decode_away(data, seq) if data.strip(b"\0") else {}

    def _put_away(
        self, seq: int, read: Mapping[str, Sequence[SourceFile]], left: Mapping[str, tuple[SourceFile, ...]]
    ) -> None:
        """Moves files that were read out of their directories, first those that the batch has just `read`. It is
        committed and published.

        What has left is recorded: the next batch forgets it, in this run or in another. `left` is what a run before
        recorded of this batch.
        """
        gone: dict[str, tuple[SourceFile, ...]] = {}
        for source, rule in self._putting_away.items():
            known, leaving = frozenset(left.get(source, ())), self._log.leaving[source]
            if files := leaving.take(len(read.get(source, ())) + len(known)):
                with storage_errors(f"putting away files of {source} that were read"):
                    away = put_away(rule, files, self.store.failpoints, known)
                for file in leaving.put_back(away.failed, away.untried):
                    _logger.warning(
                        "%s was read and could not be put away, which is tried again: %s", file.path, away.failed[file]
                    )
                self._log.gone(source, away.gone)
                if not known.issuperset(away.gone):
                    gone[source] = tuple(away.gone)
        if gone:
            path = away_path(seq)
            with storage_errors("recording which files have left"):
                self.store.delete(path)
                self.store.create_exclusive(path, encode_away({**left, **gone}), hasty=True)

    def _collect(self, unnamed: list[str]) -> None:
        for path in unnamed:
            self.store.failpoints.hit("commit-during-gc")
            self.store.delete(path)
        while len(self._retained) > RETAINED:
            delete_retired(self.store, self._retained.pop(0), self._retained)
        if self._retained[-1].seq % _SWEEP_EVERY == 0:
            delete_leftovers(self.store, self._retained, running=True)

    def _check_usable(self) -> None:
        if not self._usable:
            raise StateError(
                WRITER,
                f"the checkpoint in {self.store.where} is closed, or a commit to it failed",
                hint="open it again: that completes or drops the last batch",
            )

    def _taken_over(self) -> StateError:
        return StateError(
            WRITER, f"another run has taken over {self.store.where}", hint="run only one at a time on a checkpoint"
        )


def retained_manifests(store: Store) -> list[Manifest]:
    """The newest manifest, and the one before if it can be read; `StateError` TG504 if there is reason to doubt the
    newest.
    """
    with storage_errors(f"listing {store.where}"):
        sequences = _sequences(store, "manifests")
        later = max([0, *_sequences(store, "published"), *(seq - 1 for seq in _sequences(store, "intents"))])
    newest = sequences[-1] if sequences else 0
    if later > newest:
        raise StateError(
            MANIFEST,
            f"{manifest_path(later)} is missing in {store.where}: that batch was committed",
            hint="restore the whole checkpoint from a backup, Spark's included",
        )
    manifests = []
    for seq in sequences[-RETAINED:]:
        try:
            with storage_errors(f"reading {manifest_path(seq)}"):
                manifests.append(decode_manifest(store.read_bytes(manifest_path(seq)), seq))
        except StateError:
            if seq == newest:
                raise
    return manifests


def _sequences(store: Store, area: str) -> list[int]:
    return sorted(seq for path in store.list_files(area) if (seq := sequence_of(path)) is not None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint as tools see it. They read it without a lock, also while a run writes."""

    meta: Meta
    manifest: Manifest | None
    pending: Intent | None


def _meta_to_read(store: Store) -> Meta:
    """The meta data of a checkpoint for a reader. A new directory has none, which is an error."""
    try:
        meta = read_meta(store)
    except StateError as error:
        if error.code != LOCATION:
            raise
        raise StateError(LOCATION, error.message, hint="name the directory that was given as checkpoint") from None
    if meta is None:
        raise StateError(MANIFEST, f"there is no checkpoint in {store.where}", hint="check the path")
    return meta


def inspect(store: Store) -> Snapshot:
    """Read a checkpoint without changing anything; `StateError` if there is none or it is damaged."""
    for last_try in (False, False, True):
        meta = _meta_to_read(store)
        try:
            manifests = retained_manifests(store)
            manifest = manifests[-1] if manifests else None
            return Snapshot(meta, manifest, pending_intent(store, 1 if manifest is None else manifest.seq + 1))
        except StateError as error:  # a running writer may have moved on between two reads
            if last_try or error.code == MEMORY:
                raise
    raise InternalError("TG590", "unreachable")
