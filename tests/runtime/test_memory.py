"""How much memory a run takes for what it could read again: a share of what the process may use."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tidegate.runtime.engines import memory


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where control groups are; the process is in /system/job of both versions."""
    (tmp_path / "cgroup").write_text("4:memory:/system/job\n1:cpu:/other\n0::/system/job\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "MOUNTED", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "file",
    [
        "memory.max",
        "system/memory.max",
        "system/job/memory.max",
        "memory/memory.limit_in_bytes",
        "memory/system/job/memory.limit_in_bytes",
    ],
)
def test_the_groups_of_the_process_and_those_above_limit_it(file: str, groups: Path) -> None:
    unlimited = memory.memory_limit()
    (groups / file).parent.mkdir(parents=True, exist_ok=True)
    (groups / file).write_text("4000\n")
    assert memory.memory_limit() == 4000 != unlimited
    assert memory.cache_bytes(None) == 1000
    (groups / file).write_text("max\n")
    assert memory.memory_limit() == unlimited


def test_the_limit_of_the_process_itself_counts(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8000, resource.RLIM_INFINITY))
    assert memory.cache_bytes(None) == 2000
    assert memory.cache_bytes(5) == 5
