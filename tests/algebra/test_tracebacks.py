"""Tracebacks of errors that a user can mend end at the user's line; all others stay as they are."""

from __future__ import annotations

import logging
import os
import pkgutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import pytest

import tidegate as tg
from tidegate.algebra.diagnostics.frames import rendered
from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.errors import Site, call_site
from tools.docs_reference import HELD

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


CLOCK = """
import json
import tidegate as tg

def clock():
    return json.loads(BAD)

events = tg.stream("E", "n bigint, t timestamp", progress="t")
with tg.program(All=events).session(clock=clock) as session:
    session.step()
"""


@pytest.mark.parametrize(("bad", "inside"), [("0 / 0", []), ("'no json'", ["__init__.py", "decoder.py", "decoder.py"])])
def test_an_error_of_a_function_of_the_user_has_no_frame_of_ours_either(
    tmp_path: Path, bad: str, inside: list[str]
) -> None:
    text = said(CLOCK.replace("BAD", bad), tmp_path)
    assert frames(text) == ["mine.py", "mine.py", *inside]
    assert "session.py" in frames(said(CLOCK.replace("BAD", bad), tmp_path, TIDEGATE_TRACEBACK="full"))


def test_an_error_of_a_package_that_the_library_calls_keeps_all_frames(tmp_path: Path) -> None:
    script = CLOCK.replace("clock=clock", 'clock=functools.partial(json.loads, "none")').replace("BAD", "0")
    text = said(script.replace("import json\n", "import functools, json\n"), tmp_path)
    assert "session.py" in frames(text)


def refused() -> tg.Relation:
    events = tg.stream("E", "n bigint, t timestamp", progress="t")
    return events.where(events.m > 1)


def by_a_logger() -> None:
    try:
        refused()
    except tg.QueryError:
        logging.getLogger("mine").exception("refused")


def by_traceback() -> None:
    try:
        refused()
    except tg.QueryError:
        traceback.print_exc()


def by_a_thread() -> None:
    thread = threading.Thread(target=refused)
    thread.start()
    thread.join()


def in_a_chain() -> None:
    try:
        try:
            refused()
        except tg.QueryError as error:
            raise ValueError("no query") from error
    except ValueError:
        traceback.print_exc()


@pytest.mark.parametrize("printed", [by_a_logger, by_traceback, by_a_thread, in_a_chain])
def test_whoever_prints_it(
    printed: Callable[[], None],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)  # pytest keeps what ends a thread
    printed()
    text = capfd.readouterr().err + caplog.text
    assert "TG101 unknown attribute 'm'" in text
    assert set(frames(text)) <= {"test_tracebacks.py", "threading.py"}


def test_causes_are_printed_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tg.program(All=tg.stream("E", "n bigint, t timestamp", progress="t")).run({"E": [(1, "2026-01-01T00:00Z")]})
    table = rows["All"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tg.QueryError) as caught:
        table.pandas()
    assert isinstance(caught.value.__cause__, ImportError)
    assert set(frames("".join(traceback.format_exception(caught.value)))) == {"test_tracebacks.py"}


def test_a_bug_of_ours_keeps_all_frames() -> None:
    @trimmed
    def broken() -> None:
        raise tg.InternalError("TG901", "that cannot be")

    with pytest.raises(tg.InternalError) as caught:
        broken()
    assert [frame.name for frame in traceback.extract_tb(caught.tb)] == [
        "test_a_bug_of_ours_keeps_all_frames",
        "call",
        "broken",
    ]


def test_the_programs_own_hook_stays() -> None:
    ours = "import sys\nbefore = sys.excepthook\nimport tidegate\nassert sys.excepthook is before\n"
    subprocess.run([sys.executable, "-c", ours], check=True)


def test_every_public_call_trims() -> None:
    """Operators and properties too; not what errors and problems say of themselves."""
    public = {name: getattr(tg, name) for name in tg.__all__}
    public |= {path.rpartition(".")[2]: pkgutil.resolve_name(path) for path in HELD}
    kept = []
    for name, value in public.items():
        if isinstance(value, type):
            if not issubclass(value, Exception | tg.Problem | tg.Site):
                for attribute, entry in vars(value).items():
                    function = entry.fget if isinstance(entry, property) else entry
                    if isinstance(function, FunctionType) and is_called(attribute) and not hasattr(function, "trims"):
                        kept.append(f"{name}.{attribute}")
        elif isinstance(value, FunctionType) and not hasattr(value, "trims"):
            kept.append(name)
    assert kept == []


def is_called(name: str) -> bool:
    return not name.startswith("_") or name in (
        "__getattr__",
        "__getitem__",
        "__add__",
        "__eq__",
        "__lt__",
        "__bool__",
        "__init__",
    )


def test_a_notebook_is_given_the_users_frames() -> None:
    with pytest.raises(tg.QueryError) as caught:
        tg.stream("E", "n bigint")  # type: ignore[call-arg]  # what it is refused for
    lines = caught.value._render_traceback_()
    assert lines == rendered(caught.value)
    assert frames("\n".join(lines)) == ["test_tracebacks.py"]
    assert lines[-1] != ""


def test_causes_name_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(
        compile=SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if "cell" in name else None)
    )
    module = ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    code = (lambda: 1 / 0).__code__
    cell = FunctionType(code.replace(co_filename="/tmp/ipykernel_1/cell.py", co_firstlineno=1), {})
    with pytest.raises(ZeroDivisionError) as caught:
        cell()
    error = tg.QueryError("TG305", "it failed")
    error.__cause__ = caught.value
    told = "\n".join(error._render_traceback_())
    assert 'File "In[3]", line 1' in told
    assert "ipykernel" not in told


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
