"""Public names as pyright sees them, which is what an editor completes and says of a user's code."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import tidegate as tg

ROOT = Path(__file__).resolve().parent.parent
#: pyarrow comes without types.
OF_ARROW = {"ResultTable.arrow", "RunningQuery.quarantine", "Session.quarantine", "Session.reader"}


def members(name: str, value: object) -> list[str]:
    """What a class of ours has that is public; of anything else nothing but itself."""
    if not inspect.isclass(value):
        return [name]
    has = {key for one in value.__mro__ if one.__module__.startswith("tidegate.") for key in vars(one)}
    return [f"{name}.{key}" for key in sorted(has) if not key.startswith("_")]


def used(k: int, member: str) -> str:
    """A line of a user's code that has the member of an object, or the function."""
    name, _, key = member.partition(".")
    return f"def use_{k}(x: tg.{name}) -> None: print(x.{key})" if key else f"print(tg.{name})"


def test_every_public_member_has_a_declared_type(tmp_path: Path) -> None:
    every = [one for name in tg.__all__ for one in members(name, getattr(tg, name))]
    assert {"program", "Program.start", "Relation.join", "Session.step", "BatchReport.status"} <= {*every}
    lines = ["import tidegate as tg", *(used(k, one) for k, one in enumerate(every))]
    (tmp_path / "all_names.py").write_text("\n".join(lines) + "\n")
    environment = Path(sys.prefix)
    config = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        "venvPath": str(environment.parent),
        "venv": environment.name,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(tmp_path)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    unknown = {every[one["range"]["start"]["line"] - 1] for one in found["generalDiagnostics"]}
    assert unknown == OF_ARROW
