"""Spark's own checkpoint inside ours: whether Spark can read it, and what to do where it can not."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.local import LocalStore


def how_to_go_on(root: str) -> str:
    return (
        "restore the whole checkpoint from a backup; where all sources are files, "
        f"{root}/spark can be removed instead: files read before are known and not read twice"
    )


def check_query_id(root: str) -> None:
    """`StateError` TG505 where Spark can not say which query its checkpoint belongs to; a missing file it reports itself.

    Spark follows links, so one in its part of the checkpoint is refused (TG511).
    """
    with storage_errors(f"looking for Spark's part of {root}"):
        LocalStore(root).list_files("spark")
    path = Path(root) / "spark" / "metadata"
    try:
        UUID(json.loads(path.read_bytes())["id"])
    except FileNotFoundError:
        return
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(DATA, f"{path}, Spark's own, is damaged", hint=how_to_go_on(root)) from error
