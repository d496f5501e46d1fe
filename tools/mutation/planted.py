"""Planted bugs in a process that has collected the tests which kill them, in a child for each bug.

Only kills are trusted. A bug that changes more than bodies of functions, or whose test passes here, is left to a copy
of the tree: it may be one of what runs at import, or of a process that the test starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402  # found from wherever this is started

from tools.mutation import live  # noqa: E402
from tools.mutation.children import collected, environment, failed, forked, limit_own_time  # noqa: E402
from tools.planted import GROUPS  # noqa: E402
from tools.planted.bugs import Bug  # noqa: E402

#: Their functions are replaced where they are not compiled.
KERNELS = "runtime/kernels/"
#: Seconds that a test may take without a bug, and any child whatever it does.
SECONDS, WAITING = 60.0, 200.0
#: With a bug a test takes at most so many times what it took without, and so many seconds more; of its own time.
SLOWER, MORE = 10, 10

#: Told of a kill: the bug's name, the test, seconds.
Found = Callable[[str, str, float], None]


def find_kills(killers: Mapping[str, str], jobs: int, found: Found) -> None:
    """Says of bugs, given with the test that should kill each, which ones it kills here. Runs `jobs` processes at a
    time, one for each file of tests: where a file starts threads as it is read, children may wait for them for ever.
    """
    bugs = {bug.name: bug for group in GROUPS for bug in group.bugs}
    lock = threading.Lock()

    def run(share: tuple[Sequence[str], bool]) -> None:
        names, uncompiled = share
        own = {**environment(ROOT, uncompiled=uncompiled), "TIDEGATE_SCALE": "1.5"}
        with tempfile.TemporaryFile("w+") as asked:
            json.dump({name: killers[name] for name in names}, asked)
            asked.seek(0)
            running = subprocess.Popen(
                [sys.executable, __file__],
                cwd=ROOT, env=own, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert running.stdout is not None
            for line in running.stdout:
                if line.startswith("{"):
                    kill = json.loads(line)
                    with lock:
                        found(kill["bug"], kill["test"], kill["seconds"])
            if running.wait() not in (0, 5):
                print(
                    f"tests in one process broke (exit status {running.returncode}): their bugs have copies", flush=True
                )

    by_file: dict[tuple[str, bool], list[str]] = {}
    for name, test in killers.items():
        file, _, item = test.partition("::")
        if item:
            by_file.setdefault((file, _is_of_kernels(bugs[name])), []).append(name)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, [(names, uncompiled) for (_, uncompiled), names in by_file.items()]))


def _is_of_kernels(bug: Bug) -> bool:
    return any(patch.file.startswith(KERNELS) for patch in bug.patches)


class Plugin:
    """Runs each test without a bug, then with each of its bugs, and prints the kills."""

    def __init__(self, killers: Mapping[str, str]) -> None:
        self.killers = killers
        self.bugs = [bug for group in GROUPS for bug in group.bugs if bug.name in killers]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        wanted = {*self.killers.values()}
        items[:] = [item for item in items if item.nodeid in wanted and item.get_closest_marker("spark") is None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        seconds: dict[str, float | None] = {}
        for bug in self.bugs:
            test = self.killers[bug.name]
            item = items.get(test)
            if item is None or not _is_importable(bug):
                continue
            if test not in seconds:
                seconds[test] = _seconds_without(item)
            without = seconds[test]
            if without is None:
                continue
            began = time.monotonic()
            if _kills(item, bug, without):
                print(json.dumps({"bug": bug.name, "test": test, "seconds": time.monotonic() - began}), flush=True)
        return True


def _is_importable(bug: Bug) -> bool:
    """Imports what the bug is in, which children would not have yet where it is imported in functions."""
    try:
        for patch in bug.patches:
            import_module(live.module_of(patch.file))
    except ImportError:
        return False
    return True


def _seconds_without(item: pytest.Item) -> float | None:
    """The time of its own that a test takes; None where it fails."""

    def run() -> dict[str, Any]:
        limit_own_time(SECONDS)
        began = time.process_time()
        return {"failed": failed(item) is not None, "seconds": time.process_time() - began}

    told = forked(run, WAITING)
    return None if told is None or told.get("failed", True) else told["seconds"]


def _kills(item: pytest.Item, bug: Bug, without: float) -> bool:
    def run() -> dict[str, Any]:
        for file, text in _texts(bug).items():
            live.put_text(ROOT, file, text)
        limit_own_time(SLOWER * without + MORE)
        return {"killed": failed(item) is not None}

    told = forked(run, WAITING)
    return bug.loops if told is None else told.get("killed", False)


def _texts(bug: Bug) -> dict[str, str]:
    """The texts with the bug, by their files."""
    texts: dict[str, str] = {}
    for patch in bug.patches:
        text = texts.get(patch.file) or (ROOT / patch.file).read_text(encoding="utf-8")
        texts[patch.file] = text.replace(patch.old, patch.new)
    return texts


def main() -> int:
    killers = json.load(sys.stdin)
    files = dict.fromkeys(test.partition("::")[0] for test in killers.values())
    return collected(files, "", Plugin(killers))


if __name__ == "__main__":
    sys.exit(main())
