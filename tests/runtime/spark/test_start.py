"""`tidegate start` on Spark, as a process of its own."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.runtime.test_start_command import DEPLOYED, PROGRAM, free_port, put, results

pytestmark = pytest.mark.spark


def test_it_runs_until_it_is_told_to_stop_and_says_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM + DEPLOYED.replace("every=", 'engine="spark", every='))
    put(tmp_path, 1)
    port, seen = free_port(), list[str]()
    command = [sys.executable, "-X", "faulthandler", "-m", "tidegate", "start", "program.py", "--port", str(port)]
    told = tmp_path / "told"  # a pipe that is not read meanwhile may be full before the end
    with told.open("w") as into, subprocess.Popen(command, cwd=tmp_path, stderr=into) as process:
        try:
            until = time.monotonic() + 120
            while not (results(tmp_path) and "ok" in seen) and time.monotonic() < until and process.poll() is None:
                time.sleep(0.1)  # asked without a pause, it has no time to start
                with contextlib.suppress(urllib.error.URLError):  # it does not listen yet
                    seen.append(json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read())["status"])
        finally:  # aborted, it says where it hangs
            process.send_signal(signal.SIGTERM if "ok" in seen else signal.SIGABRT)
        process.wait(timeout=60)
    said = told.read_text()
    assert process.returncode == 0, said
    assert list(dict.fromkeys(seen)) == ["starting", "ok"], said
    assert results(tmp_path) == [2]
    lines = said.splitlines()
    (runs,) = (number for number, line in enumerate(lines) if "runs Large on Spark" in line)
    assert lines.index("starting Spark") < runs < lines.index("stopping"), said
    # A worker of Spark may say last of all that its pipe is broken.
    in_ = lines.index("  in   E      3 rows, accepted")
    assert in_ > lines.index("stopping"), said
    assert lines[in_ + 1] == "  out  Large  1 row, final up to t 2026-01-01T02:59:59.999999Z"
