"""The registry of sizes is that of the source, and each of them set to small by itself changes no result."""

from __future__ import annotations

import ast
import importlib
import operator
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from _pytest.mark.structures import ParameterSet

import tidegate as tg
from tests.thresholds import OTHERS, THRESHOLDS, Threshold, Where, small
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.outputs.compaction import compact

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
#: Defaults of parameters and fields below this are no sizes.
LEAST_DEFAULT = 256
FOLDED: dict[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
}


def folded(node: ast.expr | None) -> float | None:
    """The value of a number that is written as an expression of numbers."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (positive := folded(operand)) is not None:
            return -positive
        case ast.BinOp(left=left, op=op, right=right) if type(op) in FOLDED:
            one, other = folded(left), folded(right)
            return None if one is None or other is None else FOLDED[type(op)](one, other)
        case _:
            return None


def numbers(tree: ast.Module) -> Iterator[str]:
    """Names of a module's numbers, and of defaults that are large."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if name.isupper() and folded(value) is not None:
                    yield name
            case ast.ClassDef(name=owner, body=body):
                for one in body:
                    match one:
                        case ast.AnnAssign(target=ast.Name(id=name), value=value) if (
                            folded(value) or 0
                        ) >= LEAST_DEFAULT:
                            yield f"{owner}.{name}"
            case ast.FunctionDef(name=owner, args=args):
                positional = zip(reversed([*args.posonlyargs, *args.args]), reversed(args.defaults), strict=False)
                for argument, value in (*positional, *zip(args.kwonlyargs, args.kw_defaults, strict=True)):
                    if (folded(value) or 0) >= LEAST_DEFAULT:
                        yield f"{owner}.{argument.arg}"


def in_source() -> set[str]:
    found = set()
    for path in sorted(RUNTIME.rglob("*.py")):
        module = path.relative_to(RUNTIME).with_suffix("").as_posix().replace("/", ".")
        found |= {f"{module}.{name}" for name in numbers(ast.parse(path.read_text(encoding="utf-8")))}
    return found


def test_every_number_of_the_source_is_registered() -> None:
    registered = {str(one) for one in THRESHOLDS} | set(OTHERS)
    missing = in_source() - registered
    assert not missing, f"tests/thresholds.py: sizes belong into THRESHOLDS, all else into OTHERS: {sorted(missing)}"


def test_every_registered_number_is_in_the_source() -> None:
    assert not ({str(one) for one in THRESHOLDS} | set(OTHERS)) - in_source()
    assert len({str(one) for one in THRESHOLDS}) == len(THRESHOLDS)
    assert not {str(one) for one in THRESHOLDS} & set(OTHERS)


def test_a_new_number_is_found() -> None:
    text = "ROWS = 1 << 16\nNAME = 'x'\ndef f(a, b=1 << 20, *, c=3, d=500): ...\nclass C:\n    held: int = 4 * 1024\n"
    assert list(numbers(ast.parse(text))) == ["ROWS", "f.b", "f.d", "C.held"]


@pytest.mark.parametrize(
    "threshold", [one for one in THRESHOLDS if one.small and one.where in ("embedded", "files")], ids=str
)
def test_a_threshold_is_set_wherever_it_is_read_and_set_back(threshold: Threshold) -> None:
    module = importlib.import_module(f"tidegate.runtime.{threshold.module}")
    owner, _, name = threshold.name.rpartition(".")

    def now() -> object:
        if not owner:
            return getattr(module, name)
        of = getattr(module, owner)
        function: Any = vars(of)["__init__"] if isinstance(of, type) else of
        code, kwdefaults = function.__code__, function.__kwdefaults__ or {}
        if name in kwdefaults:
            return kwdefaults[name]
        names = code.co_varnames[code.co_argcount - len(function.__defaults__) : code.co_argcount]
        return dict(zip(names, function.__defaults__, strict=True))[name]

    before = now()
    with small(threshold):
        assert now() == threshold.small[0] != before
    assert now() == before


events = tg.stream("Events", "key bigint, time bigint, value double", progress="time")


@cache
def program() -> tg.Program:
    a, b, c = events.as_("a"), events.where(events.value > 0.5).as_("b"), events.as_("c")
    pairs = a.join(b, a.key == b.key, a.time <= b.time, b.time <= a.time + 6)
    near = a.join(c, a.time < c.time, c.time <= a.time + 2)
    derived = events.partition_by("key").derive(A=tg.situation(events.value > 0.6), B=tg.situation(events.value < 0.5))
    return tg.program(
        Windows=events.group_by(events.key, end=tg.ceil(events.time, 10)).agg(
            n=tg.count(), total=tg.sum(events.key), mean=tg.avg(events.value), top=tg.max(events.value)
        ),
        Pairs=pairs.select(key=a.key, first=a.time, second=b.time),
        Near=near.group_by(end=tg.ceil(c.time, 10)).agg(n=tg.count()),
        Alone=a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + 4).select(key=a.key, time=a.time),
        Found=derived.match(derived.A.before(derived.B), within=20),
    )


def results(threshold: Threshold | None, value: float | None = None) -> dict[str, list[tuple[object, ...]]]:
    """Of five batches of forty rows each, dead rows freed as they are by default."""
    rng = random.Random(5)
    found = {}
    with small(threshold, value), program().session() as session:
        for batch in range(5):
            times = sorted(rng.randrange(40) for _ in range(40))
            rows = [
                (rng.randrange(4), 40 * batch + time + i // 40, rng.randrange(8) / 8) for i, time in enumerate(times)
            ]
            session.push("Events", list({row[:2]: row for row in rows}.values()))
            session.advance("Events", {"time": 40 * batch + 39})
            session.step()
        session.finish()
        session.step()
        for query in session._plan.queries:
            table = session.table(query.stream).arrow()
            found[query.name] = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
    return found


def from_files(
    folder: Path, threshold: Threshold | None, value: float | None = None
) -> dict[str, list[tuple[object, ...]]]:
    """Six files, two a batch, of which the first is in a session of its own, over a checkpoint on disk.

    The archive has one of them before it leaves, as after a crash. Results are compacted before they are read.
    """
    rng = random.Random(6)
    (folder / "in").mkdir(parents=True)
    for number in range(6):
        rows = {(rng.randrange(4), 40 * number + rng.randrange(40)): rng.randrange(8) / 8 for _ in range(40)}
        made = [(k, t, v) for (k, t), v in rows.items()]
        frame = pl.DataFrame(made, schema=["key", "time", "value"], orient="row")
        frame.write_parquet(folder / "in" / f"{number:02}.parquet")
        os.utime(folder / "in" / f"{number:02}.parquet", (1_600_000_000 + number,) * 2)
    (folder / "archive").mkdir()
    shutil.copy2(folder / "in" / "03.parquet", folder / "archive")
    with small(threshold, value):
        with session_of(folder) as session:
            session.step()
        with session_of(folder) as session:
            session.process()
        with session_of(folder) as session:  # the one before has given up compactions that it had begun
            merged = [compact(folder / "out" / query.stream, fanout=2).rows for query in session._plan.queries]
            assert threshold is not None or any(merged)
            tables = {query.name: session.table(query.stream).arrow() for query in session._plan.queries}
    assert sorted(os.listdir(folder / "archive")) == [f"{number:02}.parquet" for number in range(6)]
    return {
        name: sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
        for name, table in tables.items()
    }


def session_of(folder: Path) -> Session:
    made = program()
    results = {query.query.stream for query in made.facts.queries if not query.query.inner}
    files = tg.parquet(folder / "in", per_batch=2, delay=40, bounded=True, archive=folder / "archive")
    return made.session(
        sources={"Events": files},
        sinks={name: tg.parquet_sink(folder / "out" / name, compact=True) for name in results},
        checkpoint=folder / "checkpoint",
    )


@cache
def usual() -> dict[str, list[tuple[object, ...]]]:
    return results(None)


@cache
def usual_from_files() -> dict[str, list[tuple[object, ...]]]:
    with tempfile.TemporaryDirectory() as folder:
        return from_files(Path(folder), None)


def small_ones(where: Where, quick: Callable[[int, int], bool]) -> list[ParameterSet]:
    """Thresholds and their values; `quick` says which are in `make test`, by the numbers of threshold and value."""
    chosen = [one for one in THRESHOLDS if one.small and one.where == where]
    return [
        pytest.param(one, value, id=f"{one}={value}", marks=() if quick(number, place) else pytest.mark.long)
        for number, one in enumerate(chosen)
        for place, value in enumerate(one.small)
    ]


@pytest.mark.parametrize(("threshold", "value"), small_ones("embedded", lambda _, place: place == 0))
def test_a_small_threshold_changes_no_result(threshold: Threshold, value: float) -> None:
    wanted = usual()
    assert all(wanted.values())
    assert results(threshold, value) == wanted


@pytest.mark.parametrize(
    ("threshold", "value"), small_ones("files", lambda number, place: place == 0 and number % 3 == 0)
)
def test_a_small_threshold_changes_no_result_from_files(tmp_path: Path, threshold: Threshold, value: float) -> None:
    wanted = usual_from_files()
    assert all(wanted.values())
    assert from_files(tmp_path, threshold, value) == wanted
