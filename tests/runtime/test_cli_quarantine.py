"""`tidegate quarantine CHECKPOINT`: rejected rows by source and reason, and the latest of them with what was wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.runtime.cli.commands import main

cars = tg.stream("Cars", "car string, t bigint, speed double", progress="t")
trucks = tg.stream("Trucks", "t bigint", progress="t")
fast = cars.partition_by("car").derive(Fast=tg.situation(cars.speed > 80)).Fast


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    counted = fast.group_by(w=tg.tumbling(fast.te, 5)).agg(n=tg.count())
    with tg.program(Counted=counted, All=trucks).session(checkpoint=tmp_path / "state") as session:
        session.push("Trucks", [(1,), ("noon",), (None,), (None,)])
        session.push("Cars", [("a", 1, 90.0), ("a", 1, 3.0), ("b", None, 2.0)])
        session.finish()
        with pytest.warns(tg.RunWarning, match="TG435"):
            session.step()
    monkeypatch.chdir(tmp_path)
    return "state"


def test_rows_are_counted_and_the_latest_are_shown_with_what_is_wrong(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quarantine", state]) == 0
    assert (
        capsys.readouterr().out
        == """\
quarantine of state: 6 rows
  Cars     1 null
  Counted  2 tie
  Trucks   2 null, 1 unparseable

Trucks: unparseable, for t, row 1 of push
  {"t": "noon"}

Trucks: null, for t, row 2 of push
  {"t": null}

Trucks: null, for t, row 3 of push
  {"t": null}

Cars: null, for t, row 2 of push
  {"car": "b", "t": null, "speed": 2.0}

Counted: tie
  {"car": "a", "t": 1}
  because  TG304 two events of one partition at 1: nothing says which comes first

Counted: tie
  {"car": "a", "t": 1}
  because  TG304 two events of one partition at 1: nothing says which comes first
"""
    )
    assert main(["quarantine", state, "--source", "Trucks", "--reason", "null", "--limit", "1"]) == 0
    assert (
        capsys.readouterr().out
        == """\
quarantine of state: 2 rows, the latest 1 below
  Trucks  2 null

Trucks: null, for t, row 3 of push
  {"t": null}
"""
    )
    assert main(["quarantine", state, "--source", "Truck"]) == 0
    assert capsys.readouterr().out == (
        "quarantine of state: 0 rows like this; there are Cars (null), Counted (tie), Trucks (null), Trucks "
        "(unparseable)\n"
    )


def test_the_same_as_json(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quarantine", state, "--reason", "tie", "--limit", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found.pop("latest")
    assert found == {"checkpoint": "state", "rows": 2, "counts": {"Counted": {"tie": 2}}}
    assert (row["source"], row["reason"], row["position"]) == ("Counted", "tie", 1)


def test_what_is_no_checkpoint_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quarantine", str(tmp_path)]) == 1
    assert "TG5" in capsys.readouterr().err
    assert main(["quarantine", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"][0]["code"].startswith("TG5")
    with pytest.raises(SystemExit):
        main(["quarantine", "state", "--limit", "-1"])
    assert "--limit: '-1' is no number of rows" in capsys.readouterr().err
