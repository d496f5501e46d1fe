"""The tools that judge the tests: a run that checked nothing must not pass for one that did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import fuzz

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
