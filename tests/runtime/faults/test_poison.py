"""State that someone who means harm wrote, checksums and all: taken as data or refused, and nothing of it is
executed.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.faults.scenarios import NAMES, STEPS, go_on, outcome, scenario, static_join, undisturbed
from tests.runtime.faults.test_damage import ODD, error_of, interrupted, places, sealed, tampered
from tidegate.algebra.errors import InternalError, TidegateError
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.setup import Setup, prepare
from tidegate.runtime.engines.spark.calls import AREA, ProgressCalls
from tidegate.runtime.engines.spark.input.bounded import bounded_inputs
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.manifest import manifest_path
from tidegate.runtime.state.segments import schema_id
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.packs import PackWriter, part_of


def refused_or_taken(use: Callable[..., object], *arguments: object) -> bool:
    """Whether it was refused; an error that is none of ours fails the test."""
    error = error_of(use, *arguments)
    assert error is None or isinstance(error, TidegateError), repr(error)
    assert not isinstance(error, InternalError), repr(error)
    return error is not None


# --- tables


def with_code(table: pa.Table, trap: Path) -> pa.Table:
    """The same rows, of a type whose description is a program: it makes a directory in whoever unpickles it."""
    program = f"cos\nmkdir\n(V{trap}\ntR.".encode()
    described = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": program}
    return table.cast(pa.schema([field.with_metadata(described) for field in table.schema]))


def as_text(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))


TABLES: dict[str, Callable[[pa.Table, Path], pa.Table]] = {
    "a type with code": with_code,
    "all columns text": lambda table, _: as_text(table),
    "a column less": lambda table, _: table.drop_columns(table.column_names[:1]),
    "a column more": lambda table, _: table.append_column("more", pa.array([{"a": [1]}] * table.num_rows)),
    "other names": lambda table, _: table.rename_columns([f"../{name}\0" for name in table.column_names]),
    "a row more": lambda table, _: pa.concat_tables([table, table.slice(0, 1)]),
    "nested": lambda table, _: table.select([]).append_column("k", pa.array([[[[]]]] * table.num_rows)),
}


def entries(body: Any, path: str) -> Iterator[dict[str, Any]]:
    """What a manifest says of a file."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    if isinstance(body, dict) and body.get("path") == path:
        yield body
    for one in inner:
        yield from entries(one, path)


def tables_of(store: LocalStore, area: str) -> list[str]:
    """The paths by which the third manifest names segments, or tables that operators keep."""
    manifest = inspect(store).manifest
    assert manifest is not None
    if area == "segments":
        return [segment.path for some in manifest.segments.values() for segment in some]
    return [file.path for state in manifest.kernel.values() for file in state.files]


def put(store: LocalStore, path: str, table: pa.Table, *, schema: bool) -> None:
    """Another table in the place of one, and a manifest that fits it; `schema`: also where it says what columns there
    are.
    """
    pack = PackWriter.of(3, "0" * 12)
    file = pack.add(table)
    if part_of(path) is None:
        store.delete(path)
        pq.write_table(table, Path(store.where) / path)
        data = store.read_bytes(path)
        file = FileRef(path, len(data), f"crc32:{zlib.crc32(data):08x}")
    else:
        store.write_bytes(pack.path, bytes(pack.data))
    manifest = json.loads(store.read_bytes(manifest_path(3)))["body"]
    for entry in entries(manifest, path):
        entry |= {"path": file.path, "bytes": file.bytes, "checksum": file.checksum}
        if schema and "schema" in entry:
            entry |= {"schema": schema_id(table.schema), "rows": table.num_rows}
    store.delete(manifest_path(3))
    store.write_bytes(manifest_path(3), sealed("manifest", manifest))


@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("kind", sorted(TABLES))
def test_poisoned_tables(kind: str, schema: bool, tmp_path: Path) -> None:
    """Every segment of a run, one after the other."""
    name = "keyed with duplicates"
    one, trap = scenario(name), tmp_path / "trap"
    whole = interrupted(one, tmp_path / "whole")
    paths = tables_of(whole, "segments")
    assert paths
    taken = 0
    for number, path in enumerate(paths):
        store = LocalStore(tmp_path / str(number), sync=False)
        shutil.copytree(whole.where, store.where)
        put(store, path, TABLES[kind](whole.read_table(path), trap), schema=schema)
        refused_or_taken(list_state, store)
        if not refused_or_taken(go_on, one, store, STEPS):
            taken += 1
            if kind == "a type with code":
                assert outcome(one, store) == undisturbed(name)
    assert taken == len(paths) if kind == "a type with code" else taken < len(paths) or schema
    assert not trap.exists()


def changed(column: str, value: object) -> Callable[[pa.Table, Path], pa.Table]:
    """The same rows with a value in all of a column, where there is one. Aggregates have the numbers of runs first."""

    def change(table: pa.Table, _: Path) -> pa.Table:
        names = table.column_names if "number" in table.column_names else ["number", *table.column_names[1:]]
        if column not in names:
            return table
        place = names.index(column)
        values = pa.array([value] * table.num_rows, table.schema.field(place).type)
        return table.set_column(place, table.column_names[place], values)

    return change


KEPT = {
    **TABLES,
    "of no definition": changed("definition", 1 << 40),
    "of one before the first": changed("definition", -7),
    "of no definition that is known": changed("definition", None),
    "begun after its end": changed("start", 1 << 50),
    "at the end of time": changed("end", (1 << 63) - 1),
    "before all time": changed("start", -(1 << 63)),
    "of the last run of all": changed("number", (1 << 63) - 1),
    "of no known run": changed("number", None),
    "of one run": changed("number", 0),
}
#: Some such rows could be: another state, which is taken as it is.
POSSIBLE = ("a row more", "of one run")


@pytest.mark.parametrize("kind", sorted(KEPT))
def test_poisoned_state_of_a_pattern(kind: str, tmp_path: Path) -> None:
    """Every table of situations and of their aggregates, one after the other."""
    one, trap = scenario("pattern"), tmp_path / "trap"
    whole = interrupted(one, tmp_path / "whole")
    paths = tables_of(whole, "kernel")
    refused = []
    for number, path in enumerate(paths):
        before = whole.read_table(path)
        after = KEPT[kind](before, trap)
        if after.equals(before, check_metadata=True):
            continue
        store = LocalStore(tmp_path / str(number), sync=False)
        shutil.copytree(whole.where, store.where)
        put(store, path, after, schema=False)
        refused_or_taken(list_state, store)
        refused.append(refused_or_taken(go_on, one, store, STEPS))
    assert len(refused) > 2
    assert all(refused) or kind in POSSIBLE
    assert not trap.exists()


def test_an_input_file_with_code(tmp_path: Path) -> None:
    """Read as the rows it holds."""
    (tmp_path / "in").mkdir()
    table = pa.table({"k": [1, 2], "t": [1, 2], "v": [0, 0]})
    pq.write_table(with_code(table, tmp_path / "trap"), tmp_path / "in" / "1.parquet")
    e = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
    with tg.program(Out=e).session(sources={"E": tg.parquet(tmp_path / "in", bounded=True)}) as session:
        session.process()
        assert len(session.results("Out")) == 2
    assert not (tmp_path / "trap").exists()


# --- what is looked at without a run


@pytest.mark.parametrize("name", ["chain of queries", "keyed with duplicates", "pattern"])
def test_a_listing_of_documents_with_other_keys(name: str, tmp_path: Path) -> None:
    """Wherever a document has a key, it has another one."""
    store = LocalStore(tmp_path / "state", sync=False)
    go_on(scenario(name), store, until=3)

    def listed() -> None:
        found = list_state(store)
        str(found)
        json.dumps(found.to_dict())

    refused = 0
    for kind, path in (("meta", "meta.json"), ("manifest", manifest_path(3))):
        whole = store.read_bytes(path)
        body = json.loads(whole)["body"]
        for place in (place for place in places(body) if isinstance(place[-1], str)):
            for odd in ("", "inf", '["query"]', '["input", [], "t"]'):
                made = json.loads(whole)["body"]
                inner = made
                for step in place[:-1]:
                    inner = inner[step]
                inner[odd] = inner.pop(place[-1])
                store.delete(path)
                store.write_bytes(path, sealed(kind, made))
                refused += refused_or_taken(listed)
        store.delete(path)
        store.write_bytes(path, whole)
        assert not refused_or_taken(listed)
    assert refused > 100


# --- documents that only the Spark engine has


def check_documents(kind: str, body: Any, path: str, store: LocalStore, use: Callable[[], object]) -> None:
    every = [(place, odd) for place in places(body) for odd in ODD]
    refused = 0
    for place, odd in random.Random(kind).sample(every, min(150, len(every))):
        store.delete(path)
        store.write_bytes(path, sealed(kind, tampered(body, place, odd)))
        refused += refused_or_taken(use)
    assert refused > len(every) / 4


def test_poisoned_progress_calls(tmp_path: Path) -> None:
    known = {("E", "t"), ("F", "t")}
    store = LocalStore(tmp_path / "state", sync=False)
    ProgressCalls(store, known).add({("E", "t"): 1234567, ("F", "t"): 3})
    (path,) = store.list_files(AREA)
    body = json.loads(store.read_bytes(path))["body"]
    check_documents("calls", body, path, store, lambda: ProgressCalls(store, known))
    assert [place.name for place in tmp_path.iterdir()] == ["state"]


def test_poisoned_lists_of_bounded_inputs(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "state", sync=False)
    setup: Setup = prepare(static_join().facts, store, {"E": Source([(1, 5, 0)])}, {"N": NAMES}, {})
    setup.checkpoint.close()
    bounded_inputs(setup, store)
    path = "inputs/E/complete"
    body = json.loads(store.read_bytes(path))["body"]
    check_documents("inputs", body, path, store, lambda: bounded_inputs(setup, store))
    assert [place.name for place in tmp_path.iterdir()] == ["state"]
