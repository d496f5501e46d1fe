"""Files that lie there at a start: those that were read are not offered again, and those that changed are refused."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tidegate.runtime.connectors import directory
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.connectors.watch import Watch
from tidegate.runtime.engines.compactions import Compactions
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.file_polling import FilePolling
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.setup import prepare
from tidegate.runtime.engines.spark.input.bounded import bounded_inputs
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.store.local import LocalStore

events = tg.stream("S", "k bigint, t bigint", progress="t")
program = tg.program(Late=events.where(events.t > 5))


def session(state: Path, files: Path) -> Session:
    return Session(program.facts, LocalStore(state), sources={"S": parquet(files, delay=0)})


def write(folder: Path, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.parquet"
    pl.DataFrame({"k": [number] * 10, "t": range(10 * number, 10 * number + 10)}).write_parquet(path)
    return path


def test_a_file_that_was_written_again_is_refused_before_others_are_read(tmp_path: Path) -> None:
    state, files = tmp_path / "state", tmp_path / "in"
    first = write(files, 0)
    with session(state, files) as run:
        assert [report.counts["S"].rows_in for report in run.process()] == [10]
    second = write(files, 1)
    with session(state, files) as run:
        unread = run._setup.unread()
        assert [file.path for file in unread["S"]] == [str(second)]
        os.utime(first, (1_600_000_000, 1_600_000_000))
        with pytest.raises(tg.QueryError, match=r"TG411 S: .*0\.parquet was read with"):
            run._setup.unread()
        with pytest.raises(tg.QueryError, match=r"TG411 S: .*0\.parquet was read with"):
            run.process()


@pytest.mark.parametrize("part", [FilePolling, EmbeddedExecutor, Compactions, directory.Directory])
def test_a_run_gives_up_all_that_it_has_whatever_fails(
    part: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[type]()

    def closing(one: type[Any]) -> Callable[[object], None]:
        close = one.close

        def closes(its: object) -> None:
            close(its)
            closed.append(one)
            if one is part:
                raise OSError(errno.EIO, "failed")

        return closes

    state, files = tmp_path / "state", tmp_path / "in"
    write(files, 0)
    run = session(state, files)
    run.process()
    parts = [FilePolling, EmbeddedExecutor, Compactions, directory.Directory, Checkpoint]
    with monkeypatch.context() as faulty:
        for one in parts:
            faulty.setattr(one, "close", closing(one))
        with pytest.raises(OSError, match="failed"):
            run.close()
    assert closed == parts
    with session(state, files) as again:  # nobody has the checkpoint
        assert again.process()[-1].counts["S"].rows_in == 0


def test_of_files_that_changed_one_is_told_that_is_changed_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system tells of no changes, a look asks for one of them again, and not for those that may be mended."""
    monkeypatch.setattr(Watch, "of", lambda _: None)
    monkeypatch.setattr(directory, "SMALL_DIRECTORY", -1)
    monkeypatch.setattr(directory, "APART", float("inf"))
    state, files = tmp_path / "state", tmp_path / "in"
    times = {str(write(files, number)): 1_700_000_000 + number for number in range(3)}
    for path, time in times.items():
        os.utime(path, (time, time))
    with session(state, files) as run:
        run.process()
    for path in times:
        os.utime(path, (1_600_000_000, 1_600_000_000))
    with session(state, files) as run:
        with pytest.raises(tg.QueryError, match="TG411"):
            run._setup.unread()
        asked, *others = run._setup.directories["S"].changed
        for path in others:
            os.utime(path, (times[path], times[path]))
        with pytest.raises(tg.QueryError, match=f"TG411 S: {re.escape(asked)} was read with"):
            run._setup.unread()


def test_rows_that_a_checkpoint_keeps_have_no_age(tmp_path: Path) -> None:
    """A copy of a checkpoint that was made in its place may have other times."""
    store = LocalStore(tmp_path / "state")
    rows = pl.read_parquet(write(tmp_path / "in", 0))
    setup = prepare(program.facts, store, {"S": Source(rows)}, {}, {})
    setup = replace(setup, sources=bounded_inputs(setup, store))
    (kept,) = setup.unread()["S"]
    log, offer = setup.checkpoint.positions, Offer({"S": (kept,)})
    log.accept(offer, log.appended(offer, 1, "a"))
    os.utime(kept.path, (1_600_000_000, 1_600_000_000))
    assert not any(setup.unread().values())
    setup.close()
