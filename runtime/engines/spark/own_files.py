"""Spark's own checkpoint inside ours: whether Spark can read it, and what to do where it can not."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from tidegate.runtime.state.errors import DATA, StateError, storage_errors
from tidegate.runtime.state.store.local import LocalStore


def how_to_go_on(root: str) -> str:
    return (
        "restore the whole checkpoint from a backup; where all sources are files, "
        f"{root}/spark can be removed instead: files read before are known and not read twice"
    )


def check_query_id(root: str) -> None:
    """`StateError` TG505 where Spark can not say which query its checkpoint belongs to; a missing file it reports
    itself.

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


def is_planned(root: str) -> bool:
    """Whether Spark has planned a batch last that it did not commit, so that it runs that one first."""
    offsets, commits = (
        {int(path.name) for path in (Path(root) / "spark" / part).glob("[0-9]*") if path.name.isdigit()}
        for part in ("offsets", "commits")
    )
    return bool(offsets) and max(offsets) > max(commits, default=-1)


def planned_offsets(root: str, batch: int) -> list[str]:
    """Where Spark's sources stand after a batch that it has planned, as its checkpoint says it: a text for each
    source.
    """
    with storage_errors(f"reading what Spark has planned in {root}"):
        text = (Path(root) / "spark" / "offsets" / str(batch)).read_text(encoding="utf-8")
    return text.splitlines()[2:]  # after the version, and the settings and time of the batch
