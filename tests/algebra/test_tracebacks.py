"""Tracebacks of errors that a user can mend end at the user's line; all others stay as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import pytest

import tidegate as tg
from tidegate.algebra.errors import Site, call_site
from tidegate.algebra.tracebacks import rendered

SCRIPT = """
import tidegate as tg

def build():
    events = tg.stream("E", "n bigint, t timestamp", progress="t")
    return events.where(events.m > 1)

build()
"""


def said(script: str, place: Path, **environment: str) -> str:
    (place / "mine.py").write_text(script)
    ran = subprocess.run(
        [sys.executable, "mine.py"],
        cwd=place,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    return ran.stderr


def frames(text: str) -> list[str]:
    return [Path(line.split('"')[1]).name for line in text.splitlines() if line.strip().startswith('File "')]


def test_no_frame_of_ours_is_shown(tmp_path: Path) -> None:
    text = said(SCRIPT, tmp_path)
    assert frames(text) == ["mine.py", "mine.py"]
    assert "TG101 unknown attribute 'm'" in text
    assert "mine.py:6   return events.where(events.m > 1)" in text


def test_all_frames_are_shown_to_who_asks(tmp_path: Path) -> None:
    assert "relation.py" in frames(said(SCRIPT, tmp_path, TIDEGATE_TRACEBACK="full"))


def test_errors_of_others_go_to_the_hook_that_was_there(tmp_path: Path) -> None:
    hook = "import sys\nsys.excepthook = lambda *_: print('theirs', file=sys.stderr)\nimport tidegate\n1 / 0\n"
    assert said(hook, tmp_path) == "theirs\n"
    assert "ZeroDivisionError" in said("import tidegate\n1 / 0\n", tmp_path)


def test_a_notebook_is_given_the_users_frames() -> None:
    with pytest.raises(tg.QueryError) as caught:
        tg.stream("E", "n bigint")  # type: ignore[call-arg]  # what it is refused for
    lines = caught.value._render_traceback_()
    assert lines == rendered(caught.value)
    assert frames("\n".join(lines)) == ["test_tracebacks.py"]
    assert lines[-1] != ""


def test_errors_name_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(
        compile=SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if "cell" in name else None)
    )
    module = ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    code = (lambda: tg.stream("E", "n bigint")).__code__  # type: ignore[call-arg]  # what it is refused for
    cell = FunctionType(code.replace(co_filename="/tmp/ipykernel_1/cell.py", co_firstlineno=1), {"tg": tg})
    with pytest.raises(tg.QueryError) as caught:
        cell()
    assert "\n  In[3]:1" in str(caught.value)


def called_by(module: str) -> Site | None:
    """The place of a call from a function of a module that a function of ours has called."""
    code = (lambda: find()).__code__.replace(co_filename=f"/somewhere/{module}.py")  # type: ignore[name-defined]  # noqa: F821
    go = FunctionType(code, {"__name__": module, "find": lambda: call_site(sys._getframe(1))})
    site = go()
    assert site is None or isinstance(site, Site)
    return site


def test_no_line_is_named_that_no_user_wrote() -> None:
    here = called_by("contextlib")
    assert here is not None
    assert here.file == __file__
    assert called_by("pyspark.sql.utils") is None
