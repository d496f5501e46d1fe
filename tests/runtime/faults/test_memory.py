"""Memory that is refused at any step: said as that, nothing is damaged, and the batch can be run again."""

from __future__ import annotations

import datetime as dt
import errno
import itertools
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.runtime.faults.faulty import READS, WRITES, FaultyStore, is_example
from tests.runtime.faults.refused import REFUSALS, Refuses, told
from tests.runtime.faults.scenarios import again, give, go_on, opened, outcome, scenario, undisturbed
from tests.shards import cases
from tidegate.runtime.batch.garbage import Garbage
from tidegate.runtime.batch.increments import Evaluation
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.connectors.directory import Directory
from tidegate.runtime.engines.compactions import Compactions
from tidegate.runtime.engines.embedded import digests
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.ingest import ingest, quarantine
from tidegate.runtime.state.checkpoint import Checkpoint, inspect
from tidegate.runtime.state.errors import DATA, MEMORY, STORAGE, StateError, is_out_of_memory, storage_errors
from tidegate.runtime.state.segments import read_segments, write_segment
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

NAME = "chain of queries"


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_every_way_to_say_it(kind: str) -> None:
    assert is_out_of_memory(REFUSALS[kind]())
    assert not is_out_of_memory(StateError(DATA, "out of memory, says a name"))
    assert not is_out_of_memory(OSError(errno.EIO, "out of memory"))
    assert not is_out_of_memory(ValueError("damaged"))


def test_a_warning_that_shows_a_row_about_memory_is_none_of_memory() -> None:
    """Where warnings are errors."""
    logs = tg.stream("Logs", "text string, t bigint", progress="t")
    with tg.program(Out=logs).session() as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        session.push("Logs", [("out of memory", None)])
        with pytest.raises(tg.RunWarning, match=r"TG430(?s:.*)out of memory"):
            session.step()


def test_the_system_refuses_memory_and_nothing_else() -> None:
    with pytest.raises(StateError) as caught, storage_errors("reading x"):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    assert caught.value.code == MEMORY
    with pytest.raises(StateError) as caught, storage_errors("reading x"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert caught.value.code == STORAGE


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_a_segment_that_does_not_fit_is_not_damaged(tmp_path: Path, kind: str) -> None:
    """The message says what was read and how large it is; a file that is another one asks for memory in vain."""
    store = LocalStore(tmp_path, sync=False)
    segment = write_segment(store, "b", pa.table({"t": pa.array(range(1234), pa.int64())}), ["t"], 1, "a")
    with pytest.raises(StateError) as caught:
        read_segments(FaultyStore(store, Refuses("read_table", kind)), [segment])
    assert caught.value.code == MEMORY
    assert f"{segment.path} (1,234 rows in {segment.bytes:,} bytes)" in caught.value.message
    assert "damaged" not in caught.value.message + caught.value.hint
    assert read_segments(store, [segment]).num_rows == 1234
    data = bytearray(store.read_bytes(segment.path))
    data[len(data) // 2] ^= 1
    (tmp_path / segment.path).write_bytes(data)
    with pytest.raises(StateError) as caught:
        read_segments(FaultyStore(store, Refuses("read_table", kind)), [segment])
    assert caught.value.code == DATA


@pytest.mark.parametrize("operation", [*WRITES, *READS, "lock"])
def test_memory_that_is_refused_at_any_use_of_the_store(operation: str) -> None:
    """From each of some uses of each operation: TG510, or no matter; then the same results."""
    counting = Refuses(operation, "python", 10**9)
    go_on(scenario(NAME), FaultyStore(MemoryStore(packs=True), counting))
    for number, skip in enumerate(sorted({0, counting.uses // 3, 2 * counting.uses // 3, max(0, counting.uses - 1)})):
        kind = ("python", "arrow", "system")[number % 3]
        store = MemoryStore(packs=True)
        refuses = Refuses(operation, kind, skip)
        found = told(partial(go_on, scenario(NAME), FaultyStore(store, refuses)))
        if refuses.uses > skip:
            assert found is None or found.code == MEMORY, found
            # The sweep of a batch is made up for, and a warning does without an example.
            assert found is not None or operation in ("delete", "list_files") or is_example(refuses.path)
        go_on(scenario(NAME), again(store))
        assert outcome(scenario(NAME), store) == undisturbed(NAME)


STEPS: dict[str, tuple[Any, str]] = {
    "ingest": (EmbeddedExecutor, "ingest"),
    "increments": (Evaluation, "run"),
    "garbage": (Garbage, "collected"),
    "rewrite": (Garbage, "swept"),
    "persist": (EmbeddedExecutor, "persist"),
    "commit": (Runner, "_commit"),
    "publish": (Checkpoint, "_publish"),
    "collect": (Checkpoint, "_collect"),
    "recover": (Checkpoint, "_recover"),
}
#: What comes after the commit has begun: only opening again tells whether it counts.
LAST = {"publish", "collect"}


@pytest.mark.parametrize(
    ("step", "kind"),
    cases(itertools.product(sorted(STEPS), sorted(REFUSALS)), lambda _, kind: kind in ("python", "arrow", "polars")),
)
def test_memory_that_is_refused_in_any_step(monkeypatch: pytest.MonkeyPatch, step: str, kind: str) -> None:
    """The same batch runs again in the same session, or once the checkpoint is opened again; results as without it."""
    one, store = scenario(NAME), MemoryStore(packs=True)
    go_on(one, store, until=2)
    place, name = STEPS[step]
    done: list[bool] = []
    real = getattr(place, name)

    def refused(*given: Any, **options: Any) -> Any:
        if not done:
            done.append(True)
            error = REFUSALS[kind]()
            raise error
        return real(*given, **options)

    if step == "recover":
        monkeypatch.setattr(place, name, refused)
        found = told(lambda: opened(one, again(store)))
    else:
        with opened(one, again(store)) as session:
            monkeypatch.setattr(place, name, refused)
            give(session, one.steps[2])
            found = told(session.step)
            if found is not None and step not in {*LAST, "commit"}:
                session.step()
    assert done
    if step == "collect" and kind in ("python", "arrow", "numpy", "parquet", "system"):
        assert found is None  # what was to be deleted is left to the next sweep
    else:
        assert found is not None
        assert found.code == MEMORY
        assert found.hint
    go_on(one, again(store))
    assert outcome(one, again(store)) == undisturbed(NAME)


def test_a_batch_that_is_committed_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report is refused memory: what was pushed is in it all the same."""
    e = tg.stream("E", "k bigint, t bigint", progress="t")

    def refused(*_: object) -> None:
        raise MemoryError

    with tg.program(Out=e.select("k", "t")).session() as session:
        session.push("E", [(1, 1), (2, 2)])
        session.advance("E", 2)
        with monkeypatch.context() as patched:
            patched.setattr(Runner, "_report", refused)
            with pytest.raises(StateError, match="TG510 out of memory while a batch was in its step 'report'"):
                session.step()
        session.step()
        assert session.counts["E"].rows_in == session.counts["E"].accepted == len(session.results("Out")) == 2


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_results_that_do_not_fit_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """They are read when they are asked for, in no batch."""

    def refused(*_: object) -> None:
        error = REFUSALS[kind]()
        raise error

    events = tg.stream("E", "t bigint", progress="t")
    with tg.program(Out=events).session(checkpoint=tmp_path) as session:
        session.push("E", pa.table({"t": np.arange(99_999)}))
        session.finish()
        session.step()
        with monkeypatch.context() as during:
            during.setattr(LocalStore, "read_table", refused)
            with pytest.raises(StateError, match="TG510 out of memory while reading results of Out"):
                session.table("Out")
        assert len(session.table("Out")) == 99_999


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_rows_that_cannot_be_judged_are_of_no_bad_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nor are they set aside."""

    def refused(*_: object) -> None:
        error = REFUSALS[kind]()
        raise error

    (tmp_path / "a.csv").write_text("t\n1\n")
    source = tg.csv(tmp_path, bounded=True, on_bad_file="quarantine")
    with tg.program(Out=tg.stream("E", "t bigint", progress="t")).session(sources={"E": source}) as session:
        with monkeypatch.context() as during:
            during.setattr(ingest, "validated_pieces", refused)
            with pytest.raises(StateError, match="TG510"):
                session.step()
        session.step()
        assert (session.results("Out"), session.quarantine_rows()) == ([{"t": 1}], [])


def test_what_a_user_says_of_memory_stays_what_it_is() -> None:
    def clock() -> dt.datetime:
        raise RuntimeError("out of memory of the clock")

    class Text:
        def __repr__(self) -> str:
            raise ValueError("out of memory of this object")

    events = tg.program(Out=tg.stream("E", "t bigint, x string", progress="t"))
    with events.session(clock=clock) as session, pytest.raises(RuntimeError, match="of the clock"):
        session.step()
    with events.session() as session:
        session.push("E", [(1, Text())])
        assert session.step().counts["E"].rejected == {"wrong type": 1}


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_what_surrounds_a_batch_says_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A look at directories, the digest of what was pushed, and notices, of which only an example is missing."""

    def refused(*_: object, **__: object) -> None:
        error = REFUSALS[kind]()
        raise error

    e = tg.stream("E", "t bigint", progress="t")
    f = tg.stream("F", "t bigint", progress="t")
    program = tg.program(Out=e, Other=f, Files=tg.stream("G", "t bigint", progress="t"))
    with program.session(sources={"G": tg.csv(tmp_path, bounded=True)}) as session:
        session.push("E", [(1,), (None,)])
        session.finish("E")
        for owner, name in ((Directory, "look"), (digests, "_add"), (Compactions, "after")):
            with monkeypatch.context() as during:
                during.setattr(owner, name, refused)
                for run in (session.process, session.step) if owner is Directory else (session.step,):
                    with pytest.raises(StateError, match="TG510"):
                        run()
        assert [row["t"] for row in session.results("Out")] == [1]
        with monkeypatch.context() as during:
            during.setattr(quarantine, "kept_rows", refused)
            session.push("F", [(None,)])
            with pytest.warns(tg.RunWarning, match="TG430"):
                session.step()
        assert session.counts["F"].rejected == {"null": 1}


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_a_file_that_does_not_fit_is_no_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    from tidegate.runtime.ingest import inputs

    readers = {"parquet": "read_parquet", "csv": "_read_csv", "json": "_read_json"}

    def refused(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(inputs, readers[format_], refused)
    with pytest.raises(StateError) as caught:
        inputs.read_file(str(tmp_path / "x"), format_, tg.stream("E", "t bigint", progress="t").schema)  # type: ignore[arg-type]
    assert caught.value.code == MEMORY


CHILD = """
import resource, sys
from tests.runtime.faults.test_memory import large, pushed
from tidegate.algebra.errors import TidegateError
given = pushed()
large(sys.argv[1] + "-before", given[:1], sys.argv[3])  # whatever is loaded or compiled at first use is there
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    large(sys.argv[1], given, sys.argv[3])
except TidegateError as error:
    print(error.code)
else:
    print("done")
"""
ROWS = 200_000


#: What Rust says before it aborts the process. Nobody can catch it. Of the libraries here Polars is in Rust.
ABORTED = re.compile(r"memory allocation of \d+ bytes failed")


def pushed() -> list[dict[str, pa.Table]]:
    """The rows of four batches."""
    keys = [np.arange(number * ROWS, (number + 1) * ROWS) for number in range(4)]
    return [{"E": pa.table({"k": k, "t": k}), "F": pa.table({"k": k - ROWS // 2, "t": k})} for k in keys]


def relations() -> dict[str, tg.Relation]:
    """A join, and operators that gather rows in order of time, each of which keeps something of all keys."""
    e, f = (tg.stream(name, "k bigint, t bigint", progress="t") for name in "EF")
    a, b = e.as_("a"), f.as_("b")
    model = tg.context_model("Model", by="k", default="calm", contexts=("busy",))
    model = model.initiate("busy", when=e.where(e.k % 2 == 0)).terminate("busy", when=f.where(f.k % 3 == 0))
    absent: Any = {"A": e.k >= 0, "B": e.k < 0}
    return {
        "join": a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 2 * ROWS).select(k=a.k, t=b.t),
        "over": e.over(by="k", order="t", before=tg.lag(e.t), n=tg.row_number()),
        "windows": e.windows(tg.hopping(2 * ROWS, every=ROWS), by="k").agg(n=tg.count()).rename(end="t"),
        "sequences": e.sequences(f"A !B[{ROWS}]", by="k", order="t", define=absent).rename(detected="t"),
        "ranks": e.with_(end=tg.ceil(e.t, ROWS)).top_k(1, by=("end", "k"), order=tg.desc("t")),
        "ticks": e.ticks(ROWS, by="k", within=2 * ROWS).rename(tick="t"),
        "asof": b.asof_join(a, by="k").select("b.k", t="b.t", before="a.t"),
        "contexts": f.in_context(model, "busy"),
    }


def large(place: str | Path, batches: Sequence[Mapping[str, pa.Table]], of: str) -> tuple[int, int]:
    """Batches in a directory, from the one on that is to be done: rows of results and the sum of their keys."""
    made = tg.program(Out=relations()[of])
    streams = {stream.name for stream in made.facts.program.inputs}
    with made.session(checkpoint=place) as session:
        manifest = inspect(LocalStore(place)).manifest
        for number in range(0 if manifest is None else manifest.seq, len(batches)):
            for name in sorted(streams):
                session.push(name, batches[number][name])
                session.advance(name, {"t": (number + 1) * ROWS - 1})
            session.step()
        found = session.table("Out").arrow()
        return found.num_rows, int(np.asarray(found.column("k")).sum())


#: What the join has.
JOINED = 700_000, sum(range(700_000))
#: MiB beyond what the process has when it begins. With the least it can hold no batch.
ROOMS = (8, 24, 40, 56, 120)


@pytest.mark.parametrize("of", cases([(name,) for name in relations()], lambda of: of == "join"))
def test_a_limited_address_space(of: str, tmp_path: Path) -> None:
    """The process says TG510, at one of the limits at least, unless Polars aborts it; never that something is damaged.
    What was committed is whole, and the next process goes on.
    """
    whole = JOINED if of == "join" else large(tmp_path / "whole", pushed(), of)
    assert whole[0] > ROWS
    said = [under_a_limit(tmp_path / str(room), room, of, whole) for room in ROOMS]
    assert set(said) <= {"TG510", "done", "aborted"}, said
    assert "TG510" in said, said


def under_a_limit(place: Path, room: int, of: str, whole: tuple[int, int]) -> str:
    """What a process with so much room says, after another one has gone on from what it left."""
    command = [sys.executable, "-X", "faulthandler", "-c", CHILD, str(place), str(room), of]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if child.returncode == -signal.SIGABRT:
        assert ABORTED.search(child.stderr), child.stderr[-2000:]
        assert "/polars/" in child.stderr  # the stack that the fault handler shows
    else:
        assert child.returncode == 0, child.stderr[-2000:]
    assert large(place, pushed(), of) == whole
    return "aborted" if child.returncode else child.stdout.strip()
