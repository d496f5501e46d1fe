"""A wheel on Python's path, as `spark-submit --py-files` puts it there: nothing may look for its own files on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tidegate as tg

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import numpy as np
import pyarrow as pa
import tidegate as tg

events = tg.stream("E", "k bigint, t bigint, x boolean", progress="t")
found = tg.read_query("FROM E PARTITION BY k DEFINE A AS x, B AS NOT x PATTERN A meets B WITHIN 200", events)
n = 40_000
rows = pa.table({"k": np.arange(n) % 7, "t": np.arange(n), "x": (np.arange(n) // 70) % 2 == 0})
print(".whl" in tg.__file__, len(tg.program(Found=found).run({"E": rows})["Found"]))
"""


@pytest.mark.long
def test_a_program_runs_from_a_wheel(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("algebra", "analysis", "contexts", "runtime", "tidegate"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tree / name)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    (tmp_path / "program.py").write_text(PROGRAM)
    told = []
    for path in (ROOT, wheel):
        environment = os.environ | {"PYTHONPATH": str(path)}
        ran = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        told.append(ran.stdout.split() or [ran.stderr])
    assert told == [["False", "2002"], ["True", "2002"]]
    assert tg.__version__ in wheel.name
