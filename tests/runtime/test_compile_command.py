"""`tidegate compile`: kernels are there before a program needs them."""

from __future__ import annotations

import json

import pytest

from tidegate.runtime.cli import kernels
from tidegate.runtime.cli.commands import main


def test_all_kernels_are_compiled_or_were(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["kernels"] > 50
    assert 0 <= done["compiled"] <= done["kernels"]
    assert all("kernels" in directory for directory in done["kept_in"])
    assert main(["compile"]) == 0
    assert f"{done['kernels']} kernels, " in capsys.readouterr().out


def test_where_they_are_kept_is_said() -> None:
    assert str(kernels.Compiled(108, 3, 12.34, ("/a", "/b"))).splitlines() == [
        "108 kernels, 3 of them compiled now, in 12.3 s",
        "kept in /a",
        "kept in /b",
    ]
    assert str(kernels.Compiled(2, 2, 1.0, ())).endswith("they cannot be kept here: every process compiles them again")
