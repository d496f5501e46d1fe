"""Linear Road's benchmark measures what it says, and tells wrong answers."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from benchmarks import linear_road
from benchmarks.linear_road_answers import wanted
from examples.linear_road.generator import new_cars

OPTIONS = {"start": 150, "seconds": 4, "distinct": 1, "together": 1, "threads": 1}


def test_answers_of_a_stretch_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = linear_road.measure(2, argparse.Namespace(**OPTIONS), tmp_path / "in")
    assert made.right
    assert made.roads == 2
    assert made.row == pytest.approx(1e6 * made.seconds / made.rows)
    said = capsys.readouterr().out
    assert "2 roads, " in said
    assert f"for 4 s in 4 batches; {2 * int(new_cars(150)):,} cars before" in said
    assert "; answers right\n" in said
    assert re.search(r"\n  \d+ bytes a car: ", said)


def test_batches_of_several_seconds_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = linear_road.measure(1, argparse.Namespace(**{**OPTIONS, "together": 3}), tmp_path / "in")
    assert made.right
    assert made.longest < made.seconds
    assert "for 4 s in 2 batches" in capsys.readouterr().out


def test_wrong_answers_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_road, "wanted", lambda rows, since: wanted(rows[:-1], since))
    assert not linear_road.measure(1, argparse.Namespace(**OPTIONS), tmp_path / "wrong").right
    assert "answers WRONG" in capsys.readouterr().out
