"""Durable state of a run: segments, manifests, positions, intents and the commit protocol, for both engines.

Nothing here knows queries. A run's state is what its newest manifest names; every other file is a leftover.
"""

from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.checkpoint import Admission, Checkpoint, Snapshot, inspect
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import FAILPOINTS, SimulatedCrash
from tidegate.runtime.state.inputs.positions import ChangedFile, Offer, PositionLog, SourceFile, SparkBatch
from tidegate.runtime.state.manifest import Engine, Intent, KernelState, Manifest, SourceCounts, StagedOutput
from tidegate.runtime.state.outputs.staging import Sink
from tidegate.runtime.state.segments import (
    Segment,
    drop_or_rewrite,
    plan_compaction,
    read_segments,
    write_segment,
    write_segment_file,
)
from tidegate.runtime.state.store.interface import FileRef, Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

__all__ = [
    "FAILPOINTS",
    "Admission",
    "Batch",
    "ChangedFile",
    "Checkpoint",
    "Engine",
    "FileRef",
    "Intent",
    "KernelState",
    "LocalStore",
    "Manifest",
    "MemoryStore",
    "Offer",
    "PositionLog",
    "Segment",
    "SimulatedCrash",
    "Sink",
    "Snapshot",
    "SourceCounts",
    "SourceFile",
    "SparkBatch",
    "StagedOutput",
    "StateError",
    "Store",
    "drop_or_rewrite",
    "inspect",
    "plan_compaction",
    "read_segments",
    "write_segment",
    "write_segment_file",
]
