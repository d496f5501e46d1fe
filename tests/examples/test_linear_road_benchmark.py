"""Linear Road's benchmark measures what it says, and tells wrong and late answers."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import linear_road
from examples.linear_road.checker import Answers
from examples.linear_road.generator import new_cars

OPTIONS = {"start": 150, "seconds": 4, "distinct": 1, "threads": 1, "at_their_times": False}


def test_answers_of_a_stretch_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert linear_road.measure(2, argparse.Namespace(**OPTIONS), tmp_path / "in")
    said = capsys.readouterr().out
    assert "2 roads, " in said
    assert f"for 4 s in 4 batches; {2 * int(new_cars(150)):,} cars before" in said
    assert said.endswith("answers right\n")


def test_wrong_and_late_answers_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_road, "check", lambda rows: Answers())
    assert not linear_road.measure(1, argparse.Namespace(**OPTIONS), tmp_path / "wrong")
    assert "answers WRONG" in capsys.readouterr().out
    monkeypatch.setattr(linear_road.Answered, "right", lambda *_: True)
    monkeypatch.setattr(linear_road, "LIMITS", dict.fromkeys(linear_road.LIMITS, 0.5))  # a second takes a second
    timed = argparse.Namespace(**OPTIONS | {"at_their_times": True, "seconds": 2})
    assert not linear_road.measure(1, timed, tmp_path / "late")
    assert "Notifications" in capsys.readouterr().out
