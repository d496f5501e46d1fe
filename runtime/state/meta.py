"""The program of a checkpoint, and how another program differs from it."""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.runtime.state.codec import Json, canonical, decode, encode
from tidegate.runtime.state.errors import LOCATION, MANIFEST, PROGRAM, StateError, storage_errors
from tidegate.runtime.state.store.interface import Store

META: Final = "meta.json"
#: What a start that ended before meta.json was written leaves behind. Spark's part is begun later: one that is there
#: before is the checkpoint of somebody else's query.
_FIRST = ("lock", "tmp")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Meta:
    """The program of a checkpoint: fingerprint and readable description, who made it, and what its buffers are for.

    `layout` is for tools and opaque here; it is as old as the checkpoint and never compared.
    """

    checkpoint: str
    fingerprint: str
    description: Json
    version: str
    layout: Json = None


def read_meta(store: Store) -> Meta | None:
    """The checkpoint's meta.json, None if there is no checkpoint yet; refuses directories that hold something else."""
    with storage_errors(f"opening {store.where}"):
        if store.exists(META):
            hint = "restore the whole checkpoint from a backup, or start with a new one"
            return decode("meta", Meta, store.read_bytes(META), code=MANIFEST, where=META, hint=hint)
        names = set(store.names()) - set(_FIRST)
        foreign = sorted(names) or [path for area in _FIRST for path in store.foreign_files(area)]
    if state_names := sorted(names & {"manifests", "intents", "segments"}):
        raise StateError(
            MANIFEST,
            f"{META} is missing in {store.where}, which holds {state_names[0]!r}",
            hint="restore the checkpoint from a backup; where it never was one, give a new or empty directory",
        )
    if foreign:
        raise StateError(
            LOCATION,
            f"{store.where} is no checkpoint and not empty: it holds {foreign[0]!r}",
            hint="give a new or empty directory",
        )
    return None


def create_or_check(
    store: Store, fingerprint: str, description: Mapping[str, Any], version: str, layout: Json = None
) -> Meta:
    """The checkpoint's meta data, made on first use; `StateError` TG501 says in what another program differs."""
    described = json.loads(canonical(dict(description)))
    meta = read_meta(store)
    if meta is None:
        meta = Meta(uuid.uuid4().hex, fingerprint, described, version, layout)
        store.failpoints.hit("open-before-meta")
        with storage_errors(f"creating a checkpoint in {store.where}"):
            created = store.create_exclusive(META, encode("meta", meta))
        store.failpoints.hit("open-after-meta")
        if created:
            return meta
        existing = read_meta(store)
        if existing is None:
            raise StateError(MANIFEST, f"{META} vanished from {store.where}", hint="start again")
        meta = existing
    differing = differences(meta.description, described)
    if meta.fingerprint == fingerprint and not differing:
        return meta
    because = differing or [
        f"the normalised program or its state layout changed (made with version {meta.version}, this is {version})"
    ]
    raise StateError(
        PROGRAM,
        f"the checkpoint in {store.where} belongs to another program",
        because=tuple(because),
        hint=(
            "go back to the program that made it, or give a new checkpoint and empty directories of results, and "
            "replay the input"
        ),
    )


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Where two descriptions differ, one line each; texts of several lines as the lines that changed."""
    if old == new and type(old) is type(new):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        lines = []
        for key in sorted(old.keys() | new.keys(), key=str):
            inside = f"{place}.{key}" if place else str(key)
            if key not in new:
                lines.append(f"{inside}: only in the checkpoint: {_short(old[key])}")
            elif key not in old:
                lines.append(f"{inside}: only in this program: {_short(new[key])}")
            else:
                lines += differences(old[key], new[key], inside)
        return lines
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        delta = difflib.unified_diff(old.splitlines(), new.splitlines(), "checkpoint", "this program", lineterm="", n=0)
        changed = [line for line in delta if not line.startswith(("---", "+++", "@@"))]
        rest = len(changed) - _SHOWN
        more = [f"… and {rest} more lines"] if rest > 0 else []
        return [f"{place}: - checkpoint, + this program", *(f"  {line[:200]}" for line in changed[:_SHOWN]), *more]
    return [f"{place}: {_short(old)} in the checkpoint, {_short(new)} in this program"]


def _short(value: Any) -> str:
    text = canonical(value)
    return text if len(text) <= 120 else text[:117] + "..."
