"""Wake-ups: what Spark is told by the file beside its checkpoint, whatever lies there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidegate.runtime.engines.spark.input.wake_ups import FILE, WakeUpReader, WakeUps, WakeUpSource
from tidegate.runtime.engines.spark.setup.quick_python import quick_python
from tidegate.runtime.state.errors import StateError


def latest(reader: WakeUpReader, start: str = "") -> str:
    offset = reader.latestOffset({"wake_up": start}, ReadAllAvailable())
    text = offset["wake_up"]
    assert isinstance(text, str)
    return text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir()
    return path


def test_each_wake_up_is_something_new(tmp_path: Path, path: Path) -> None:
    wake_ups, reader = WakeUps(str(tmp_path)), WakeUpReader(str(path))
    assert latest(reader, "before") == "before"  # nothing is new where there is no file
    seen = {""}
    for _ in range(3):
        states = [wake_ups.waiting]
        wake_ups.wake()
        assert [*states, wake_ups.waiting] == [False, True]
        assert latest(reader) not in seen
        seen.add(latest(reader))
        wake_ups.begun()
    assert latest(WakeUpReader(str(path))) in seen  # also after a restart
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_threads_may_wake_it_at_once(tmp_path: Path, path: Path) -> None:
    wake_ups = WakeUps(str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(wake_ups.wake) for _ in range(400)]:
            done.result()
    assert json.loads(path.read_text()).keys() == {"wake_up"}


@pytest.mark.parametrize("damaged", [b"", b"\0" * 4096, b"\xff{", b'{"wake_up": "x"}' * 100])
def test_whatever_the_file_holds_is_a_wake_up(path: Path, damaged: bytes) -> None:
    path.write_bytes(damaged)
    assert len(latest(WakeUpReader(str(path)))) == min(len(damaged), 100)


def test_a_link_in_the_place_of_a_copy_is_not_followed(tmp_path: Path, path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("theirs")
    path.with_name(f".{path.name}.tmp").symlink_to(foreign)
    with pytest.raises(StateError):
        WakeUps(str(tmp_path)).wake()
    path.with_name(f".{path.name}.tmp").unlink()
    path.symlink_to(foreign)
    WakeUps(str(tmp_path)).wake()  # takes the link's place
    assert not path.is_symlink()
    assert foreign.read_text() == "theirs"


def test_there_are_no_rows(path: Path) -> None:
    reader = WakeUpSource({"path": str(path)}).streamReader(None)
    assert not reader.partitions(reader.initialOffset(), {"wake_up": "1"})


def test_sparks_processes_need_not_find_this_library(path: Path) -> None:
    path.write_text("now")
    program = f"""
import sys
sys.modules["tidegate"] = None
from pyspark import cloudpickle
source = cloudpickle.loads(sys.stdin.buffer.read())({{"path": {str(path)!r}}})
print(source.streamReader(None).latestOffset({{}}, None)["wake_up"])
"""
    dumped = cloudpickle.dumps(WakeUpSource)  # type: ignore[no-untyped-call]
    ran = subprocess.run([sys.executable, "-c", program], input=dumped, capture_output=True, check=True)
    assert ran.stdout.decode().strip() == "now"


ASKED = "import os, sys, pyspark; print(pyspark.__file__, os.environ.get('PYTHONPATH'), *sys.argv[1:])"


def test_its_process_loads_pyspark_from_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    told = []
    for python in (sys.executable, quick_python(sys.executable)):
        assert python is not None
        environment = {"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]}
        ran = subprocess.run([python, "-c", ASKED, "an argument"], env=environment, capture_output=True, text=True)
        told.append(ran.stdout.strip())
    assert told[0] == f"{tmp_path}/pyspark/__init__.py {tmp_path} an argument"
    assert told[1] == f"{pyspark.__file__} None an argument"


def test_another_python_is_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    assert quick_python(str(other)) is None
    assert quick_python("there is no such program") is None


def test_a_program_that_was_cleared_away_is_made_anew() -> None:
    first = quick_python(sys.executable)
    assert first is not None
    Path(first).unlink()
    second = quick_python(sys.executable)
    assert second is not None
    assert os.access(second, os.X_OK)
    assert quick_python(sys.executable) == second
