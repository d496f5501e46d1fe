"""Intents: what the next batch will do, fixed before it reads anything, so that a replay decides nothing anew."""

from __future__ import annotations

import uuid

from tidegate.runtime.state.errors import WRITER, StateError, storage_errors
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import Engine, Intent, decode_intent, encode_intent, intent_path
from tidegate.runtime.state.store.interface import Store


def pending_intent(store: Store, seq: int) -> Intent | None:
    """The recorded intent of batch `seq`, None if it was not begun, or if nothing of the record was left when the
    machine died.
    """
    path = intent_path(seq)
    with storage_errors(f"reading {path}"):
        data = store.read_bytes(path) if store.exists(path) else b""
    return decode_intent(data, seq) if data.strip(b"\0") else None


def replays(pending: Intent, offer: Offer, mode: str) -> bool:
    """Whether `offer` lets the recorded batch be run again: the same Spark batch, or embedded with the same rows pushed
    and all files still there.

    Otherwise the record is void: nothing of it was committed, so nobody can have seen its effects.
    """
    recorded = pending.offer
    if pending.mode != mode or recorded.spark != offer.spark or recorded.pushed != offer.pushed:
        return False
    if offer.spark is not None:
        return recorded.fingerprint == offer.fingerprint
    offered = {source: set(files) for source, files in offer.files.items()}
    return dict(recorded.offsets) == dict(offer.offsets) and all(
        set(files) <= offered.get(source, set()) for source, files in recorded.files.items()
    )


def record_intent(store: Store, seq: int, offer: Offer, clock: int, mode: str, engine: Engine) -> Intent:
    """Write the intent of batch `seq`; `StateError` TG503 if another writer did so just now.

    It need not outlive the machine: nobody has seen anything of a batch that is not committed.
    """
    intent = Intent(seq, uuid.uuid4().hex, mode, clock, offer, engine)
    with storage_errors(f"recording the intent of batch {seq}"):
        if not store.create_exclusive(intent_path(seq), encode_intent(intent), hasty=True):
            raise StateError(WRITER, f"another run began batch {seq} in {store.where}", hint="run only one at a time")
    return intent
