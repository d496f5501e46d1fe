"""The tools that judge the tests: a run that checked nothing must not pass for one that did."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import fuzz, planted_bugs
from tools.planted import GROUPS
from tools.planted.bugs import Bug, Group, Patch

TEST = ("tests/test_tools.py",)
RUN = ["--family", "rules", "--cases", "12", "--shard", "1/2"]


def test_fuzz_resumes_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    first = json.loads(file.read_text())
    assert first["done"] == 6
    assert 0 < first["valid"] <= 6
    capsys.readouterr()
    assert fuzz.main([*RUN, "--resume", str(file), "--at-least", str(first["valid"])]) == 0
    assert "6 cases (6 before)" in capsys.readouterr().out
    assert json.loads(file.read_text()) == first


def test_fuzz_starts_anew_where_the_code_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    state = json.loads(file.read_text())
    file.write_text(json.dumps({**state, "code": "of another day", "done": 6, "valid": 20_000}))
    capsys.readouterr()
    assert fuzz.main([*RUN, "--resume", str(file)]) == 0
    told = capsys.readouterr().out
    assert "starting anew" in told
    assert "6 cases (0 before)" in told
    assert json.loads(file.read_text()) == state


def test_fuzz_fails_where_too_few_cases_were_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main([*RUN, "--at-least", "7"]) == 4
    assert "fewer valid cases than the 7" in capsys.readouterr().out


def test_fuzz_refuses_the_file_of_another_run(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    fuzz.save(file, fuzz.State("rules", "2/2", 0, "code"))
    with pytest.raises(SystemExit, match="another run"):
        fuzz.main([*RUN, "--resume", str(file)])
    file.write_text('{"done": 3}')
    with pytest.raises(SystemExit, match="no file of this tool"):
        fuzz.main([*RUN, "--resume", str(file)])


def test_code_hash_sees_texts_and_names(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    hashes = [fuzz.code_hash(tmp_path, ["a"])]
    (tmp_path / "a" / "x.py").write_text("2")
    hashes.append(fuzz.code_hash(tmp_path, ["a"]))
    (tmp_path / "a" / "x.py").rename(tmp_path / "a" / "y.py")
    hashes.append(fuzz.code_hash(tmp_path, ["a"]))
    assert len(set(hashes)) == 3


@pytest.mark.parametrize("folder", fuzz.SOURCES)
def test_the_hashed_folders_exist(folder: str) -> None:
    assert any((fuzz.ROOT / folder).rglob("*.py"))


def test_planted_bugs_have_names_of_their_own_and_still_apply() -> None:
    bugs = planted_bugs.all_bugs()
    assert len({bug.name for bug in bugs}) == len(bugs) > 150
    assert {bug.name: planted_bugs._misfit(patch, fuzz.ROOT) for bug in bugs for patch in bug.patches} == dict.fromkeys(
        bug.name for bug in bugs
    )


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_tests_of_planted_bugs_exist(group: Group) -> None:
    for test in group.tests:
        path, _, function = test.partition("::")
        assert f"def {function}(" in (fuzz.ROOT / path).read_text() or not function


def timeout(*_: object, **__: object) -> str | None:
    raise subprocess.TimeoutExpired("pytest", 1)


def test_a_timeout_is_no_kill_save_for_bugs_that_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_bugs, "_failed", timeout)
    slow, looping = planted_bugs._run(Bug("slow", ()), TEST), planted_bugs._run(Bug("endless", (), loops=True), TEST)
    assert slow.killed_by is None
    assert "TIMED OUT" in str(slow)
    assert looping.killed_by is not None
    assert planted_bugs.summary([slow, looping]).startswith("1 of 2 planted bugs killed, 1 timed out, 0 survived")
    assert planted_bugs.good([looping])
    assert not planted_bugs.good([looping] * 10 + [slow])


def test_kernels_are_compiled_again_where_a_bug_may_be_inside() -> None:
    inlined = [Patch("runtime/kernels/patterns.py", "", "")]
    assert planted_bugs._stale(inlined) == {"patterns", "counting"}
    ignore = planted_bugs._left_out(planted_bugs._stale(inlined))
    compiled = ["patterns._search-239.py311.nbi", "slots._hash-111.py311.1.nbc", "slots.cpython-311.pyc"]
    assert ignore("kernels/__pycache__", compiled) == [compiled[0], compiled[2]]


def test_required_bugs_are_killed_however_many_others_are() -> None:
    killed = planted_bugs.Outcome(Bug("other", ()), "test_tight.py", 1.0)
    missed = planted_bugs.Outcome(Bug("vital", (), required=True), None, 1.0)
    survivor = planted_bugs.Outcome(Bug("minor", ()), None, 1.0)
    assert planted_bugs.good([killed] * 19 + [survivor])
    assert not planted_bugs.good([killed] * 99 + [missed])


def test_names_of_no_bug_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["planted_bugs.py", "--only", "no such bug"])
    assert planted_bugs.main() == 2
    assert "no such bug" in capsys.readouterr().out
