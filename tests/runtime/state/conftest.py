"""Places to run in: memory and a temporary directory, so that every test of behaviour runs on both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.state.toy import Place


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(None if request.param == "memory" else tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return Place(tmp_path)
