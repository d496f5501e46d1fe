"""The manifest: one file per batch that names everything the run's state consists of. Its creation is the commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.codec import Extended, Json, Texts, decode, encode
from tidegate.runtime.state.errors import DATA, INTENT, MANIFEST, StateError
from tidegate.runtime.state.inputs.positions import Offer, Positions, SourceFile, SparkBatch
from tidegate.runtime.state.quarantine import Quarantine
from tidegate.runtime.state.rejects.file_tables import CLOCK
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.own_files import is_own
from tidegate.runtime.state.store.packs import file_of
from tidegate.runtime.state.store.paths import check_relative

AREAS: Final = ("packs", "segments", "kernel", "positions", "quarantine", "staging")
"""Directories of the files that manifests name; whatever else lies in them is a leftover."""


@dataclass(frozen=True, slots=True)
class StagedOutput:
    """Result rows: a file, written before the commit and published as `name` after it, or a part of a pack."""

    query: str
    file: FileRef
    rows: int
    name: str


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows of one kind in an operator's state, how many, and instants between which those of some columns lie."""

    holds: str
    rows: int
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorFiles:
    """The files of an ordered operator's state, with the version of their layout, and small values.

    `kept` says what is in them, in one or several entries of a kind, so that the state is counted without reading it.
    """

    version: int
    files: tuple[FileRef, ...] = ()
    values: Json = None
    kept: tuple[KeptRows, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Rows of a source by fate. Every row has one: in = accepted + Σ rejected[reason].

    `punctuations` are rows that carry progress and nothing else, which are not rows of the stream.
    """

    rows_in: int = 0
    accepted: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    punctuations: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if (
            self.rows_in != self.accepted + sum(self.rejected.values())
            or min(self.rows_in, self.accepted, self.punctuations, *self.rejected.values()) < 0
        ):
            raise InternalError("TG591", f"counts of rows do not add up: {self}")

    def __add__(self, other: SourceCounts) -> SourceCounts:
        rejected = dict(self.rejected)
        for reason, rows in other.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + rows
        punctuations = self.punctuations + other.punctuations
        return SourceCounts(self.rows_in + other.rows_in, self.accepted + other.accepted, rejected, punctuations)


#: Where a manifest's `extra` has, per source, how many files were set aside since the beginning as they cannot be read.
#: It is also their reason in the quarantine.
UNREADABLE: Final = "unreadable"
#: And, per query and reason, how many rows were set aside as it was evaluated.
SET_ASIDE: Final = "set aside"


@dataclass(frozen=True, slots=True)
class SparkCommit:
    """The last batch of a Spark query that was committed here, and the fingerprint of what it offered."""

    batch_id: int
    offer: str


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine that executed a batch."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Intent:
    """What a batch is going to do, written before it reads anything, so that a replay does the same."""

    seq: int
    id: str
    mode: str
    clock: int
    offer: Offer
    engine: Engine


@dataclass(frozen=True, slots=True)
class Away:
    """Files that have left their directories, per source."""

    files: Mapping[str, tuple[SourceFile, ...]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The complete state of a run after batch `seq`.

    `segments` per buffer id; `kernel` per query the state of its ordered operator; `outputs` of this batch only;
    `gathered` per query results without a sink that are still too few for a file of their own; `quarantine` all
    rejected rows that are kept; `results` the directories per query; `progress` per source or query and attribute;
    `counts` per source since the beginning, `batch_counts` of this batch; `clock` in ticks; `spark` the last batch per
    Spark query id; `extra` small values of the run, opaque here.
    """

    seq: int
    intent: str
    attempt: str
    fingerprint: str
    mode: str
    clock: int
    engine: Engine
    spark_batch: SparkBatch | None
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    kernel: Mapping[str, OperatorFiles] = field(default_factory=dict)
    """The state of ordered operators. Checkpoints call it so, hence also its folder."""
    outputs: tuple[StagedOutput, ...] = ()
    gathered: Mapping[str, tuple[StagedOutput, ...]] = field(default_factory=dict)
    quarantine: Quarantine = field(default_factory=Quarantine)
    results: Mapping[str, str] = field(default_factory=dict)
    progress: Mapping[str, Extended] = field(default_factory=dict)
    counts: Mapping[str, SourceCounts] = field(default_factory=dict)
    batch_counts: Mapping[str, SourceCounts] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    spark: Mapping[str, SparkCommit] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)

    def state_files(self) -> Iterator[FileRef]:
        """The files that the next batch needs."""
        for segments in self.segments.values():
            for segment in segments:
                yield segment.file
        for state in self.kernel.values():
            yield from state.files
        for segment in self.positions.log:
            yield segment.file
        for outputs in self.gathered.values():
            for output in outputs:
                yield output.file

    def files(self) -> Iterator[FileRef]:
        """All files that this manifest names. It also keeps those from being collected that stand in its tables."""
        yield from self.state_files()
        yield from self.other_files()

    def other_files(self) -> Iterator[FileRef]:
        """Those that the next batch does not need."""
        for output in self.outputs:
            yield output.file
        yield from self.quarantine.refs()


def manifest_path(seq: int) -> str:
    return f"manifests/{seq:010d}.json"


def intent_path(seq: int) -> str:
    return f"intents/{seq:010d}.json"


def marker_path(seq: int) -> str:
    """The marker that a batch's outputs are published. Without it they are published again."""
    return f"published/{seq:010d}"


def away_path(seq: int) -> str:
    """The record of files that have left their directories since a batch, whose manifest still names them."""
    return f"away/{seq:010d}"


def sequence_of(path: str) -> int | None:
    """The batch number in a path of one of the kinds above, None for any other file."""
    name = path.rpartition("/")[2].removesuffix(".json")
    return int(name) if len(name) == 10 and name.isascii() and name.isdigit() else None


def encode_manifest(manifest: Manifest, texts: Texts | None = None) -> bytes:
    """The manifest as its file has it; `texts` are known of the manifest before."""
    return encode("manifest", manifest, texts)


def decode_manifest(data: bytes, seq: int) -> Manifest:
    """The manifest of batch `seq`; `StateError` TG504 if it is damaged, another batch's, or names a file elsewhere."""
    where, hint = (
        manifest_path(seq),
        "restore the whole checkpoint from a backup; older manifests are not used silently",
    )
    manifest = decode("manifest", Manifest, data, code=MANIFEST, where=where, hint=hint)
    if manifest.seq != seq:
        raise StateError(MANIFEST, f"{where} is the manifest of batch {manifest.seq}", hint=hint)
    for file in (*manifest.files(), *manifest.quarantine.leaving):
        if check_relative(file.path).partition("/")[0] not in AREAS or not is_own(file_of(file.path)):
            raise StateError(MANIFEST, f"{where} names {file.path!r}, which is no state file", hint=hint)
    for segment in manifest.quarantine.files:
        if CLOCK not in segment.bounds:
            raise StateError(MANIFEST, f"{where} does not say when {segment.path!r} was set aside", hint=hint)
    for table in manifest.quarantine.tables:
        if not table.is_sound:
            raise StateError(MANIFEST, f"{where} does not say what {table.table.path!r} has", hint=hint)
    gathered = (output for outputs in manifest.gathered.values() for output in outputs)
    for output in (*manifest.outputs, *gathered):
        if "/" in check_relative(output.name) or output.name.startswith("."):
            raise StateError(MANIFEST, f"{where} names an output {output.name!r}", hint=hint)
    return manifest


def encode_away(files: Mapping[str, tuple[SourceFile, ...]]) -> bytes:
    return encode("away", Away(files))


def decode_away(data: bytes, seq: int) -> Mapping[str, tuple[SourceFile, ...]]:
    """The files that have left since batch `seq`, per source; `StateError` TG505 if the record is damaged."""
    where = away_path(seq)
    hint = f"delete {where}: names of files that have left are then not free for others, and nothing else depends on it"
    return decode("away", Away, data, code=DATA, where=where, hint=hint).files


def encode_intent(intent: Intent) -> bytes:
    return encode("intent", intent)


def decode_intent(data: bytes, seq: int) -> Intent:
    """The intent of batch `seq`; `StateError` TG507 if it is damaged or another batch's."""
    where = intent_path(seq)
    hint = f"no result depends on it yet: delete {where} to let the batch be planned anew"
    intent = decode("intent", Intent, data, code=INTENT, where=where, hint=hint)
    if intent.seq != seq:
        raise StateError(INTENT, f"{where} is the intent of batch {intent.seq}", hint=hint)
    return intent


def unreadable_files(manifest: Manifest) -> dict[str, int]:
    """The number of files set aside per source since the beginning, for sources that have any."""
    counts = manifest.extra.get(UNREADABLE)
    return {name: files for name, files in counts.items() if type(files) is int} if isinstance(counts, dict) else {}


def set_aside_rows(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Per query, or part of one, how many rows were set aside since the beginning as it was evaluated, by reason."""
    counts = manifest.extra.get(SET_ASIDE)
    if not isinstance(counts, dict):
        return {}
    by_query = ((name, reasons) for name, reasons in counts.items() if isinstance(reasons, dict))
    return {name: {why: rows for why, rows in reasons.items() if type(rows) is int} for name, reasons in by_query}


def added(counts: Mapping[str, Mapping[str, int]], more: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """The sum of two counts by query and reason."""
    total = {name: dict(reasons) for name, reasons in counts.items()}
    for name, reasons in more.items():
        known = total.setdefault(name, {})
        for reason, rows in reasons.items():
            known[reason] = known.get(reason, 0) + rows
    return total
