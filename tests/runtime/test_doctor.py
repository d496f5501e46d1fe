"""`tidegate doctor` and `tidegate version`."""

from __future__ import annotations

import json
import py_compile
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tidegate
from tidegate.runtime.cli import doctor
from tidegate.runtime.cli.commands import main


def findings(diagnosis: doctor.Diagnosis) -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in diagnosis.findings}


def test_a_complete_environment_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "everything that Tidegate needs is here" in text
    assert metadata.version("polars") in text


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["healthy"] is True
    assert {finding["name"] for finding in answer["findings"]} >= {"python", "java", "pyspark", "memory", "java cache"}


def test_what_is_missing_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda: None)
    monkeypatch.setattr(doctor, "CORE", ("numpy", "no-such-package-of-ours"))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "1 missing" in text
    assert "pip install no-such-package-of-ours" in text
    assert "pip install 'tidegate[java]'" in text


def test_optional_packages_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package-of-ours": "tidegate[spark]"})
    monkeypatch.setattr(doctor, "USES", {"no-such-package-of-ours": "pictures"})
    monkeypatch.setattr(doctor, "find_java", lambda: None)
    diagnosis = doctor.diagnose()
    assert diagnosis.healthy
    assert findings(diagnosis)["no-such-package-of-ours"].status == "optional"
    assert findings(diagnosis)["java"].status == "optional"
    assert "for those who want them: no-such-package-of-ours, java" in str(diagnosis)


@pytest.mark.parametrize("kept", [True, False])
def test_packages_that_each_start_compiles_are_named(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "CORE", ("plain",))
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept)
    found = findings(doctor.diagnose())["compiled packages"]
    assert found.status == ("ok" if kept else "warning")
    assert "plain" in found.found
    assert ("compileall" in found.advice) == (not kept)
    py_compile.compile(str(tmp_path / "plain.py"))
    assert findings(doctor.diagnose())["compiled packages"].found == "all"


def test_a_cache_that_cannot_be_written_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    diagnosis = doctor.diagnose()
    assert findings(diagnosis)["java cache"].status == "missing"
    assert "XDG_CACHE_HOME" in findings(diagnosis)["java cache"].advice
    assert not diagnosis.healthy


def test_little_memory_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "memory_limit", lambda: 2**30)
    assert findings(doctor.diagnose())["memory"].status == "warning"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == 2 * f"tidegate {tidegate.__version__}\n"
