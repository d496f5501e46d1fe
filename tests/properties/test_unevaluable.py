"""Rows for which a term has no value: set aside one by one as the reference says, and results are those of the others.

Whatever the batching, the engine, and the queries that read the stream.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.properties.families import seeds
from tests.shards import shards
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import InternalError, QueryError
from tidegate.algebra.nodes import Imbed, children
from tidegate.algebra.semantics import Row, bags_equal, evaluate_leniently, evaluate_program, unevaluable
from tidegate.runtime import rows as small_rows
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.eval import unevaluable as engine
from tidegate.runtime.eval.joins import ranges as joins
from tidegate.runtime.eval.lenient import Lenient, SetAsideRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIG = 1 << 62
S = tg.stream("S", "k bigint, x bigint, y bigint, w string, t bigint", progress="t")
O = tg.stream("O", "k bigint, t bigint", progress="t")
T = tg.table("T", "k bigint, f bigint")


@dataclass(frozen=True)
class Case:
    """A program over S, and the rows of all that it reads."""

    program: tg.Program
    rows: Mapping[str, Sequence[Row]]

    def fates(self) -> list[bool]:
        """Of each row of S, whether it is set aside."""
        nodes = [query.node for query in self.program.definition.queries]
        return [unevaluable(nodes, "S", row, {"T": self.rows["T"]}) for row in self.rows["S"]]

    def results(self) -> dict[str, list[Row]]:
        fine = [row for row, gone in zip(self.rows["S"], self.fates(), strict=True) if not gone]
        return evaluate_program(self.program.definition, {**self.rows, "S": fine})

    def lenient_results(self) -> dict[str, list[Row]]:
        fine = [row for row, gone in zip(self.rows["S"], self.fates(), strict=True) if not gone]
        known: dict[str, Sequence[Row]] = {**self.rows, "S": fine}
        found = {}
        for query in self.program.definition.queries:
            known[query.name] = found[query.name] = evaluate_leniently(query.node, known)
        return found


class Maker:
    """Random programs in which terms fail on some rows."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"unevaluable {seed}")

    def case(self) -> Case:
        queries = {f"Q{number}": self.query() for number in range(self.rng.choice((1, 1, 2)))}
        pick = self.rng.choice
        rows: dict[str, list[Row]] = {
            "S": [
                (pick((0, 1, 2, None)), self.number(), self.number(), pick(("1", "7", "many", None)), pick(range(9)))
                for _ in range(pick((3, 12, 40)))
            ],
            "O": [(pick((0, 1, 2)), pick(range(9))) for _ in range(6)],
            "T": [(pick((0, 1, 2, None)), pick((0, 1, 2, -1, BIG, None))) for _ in range(pick((0, 1, 4)))],
        }
        return Case(tg.program(**queries), rows)

    def case_of_joins(self) -> Case:
        """A program in which terms fail on pairs, groups and results of groups."""
        case = self.case()
        queries = {f"Q{number}": self.joins() for number in range(self.rng.choice((1, 2)))}
        return Case(tg.program(**queries), case.rows)

    def joins(self) -> Relation:
        rng, s, o = self.rng, S.as_("s"), O.as_("o")
        near = [s.k == o.k, s.t <= o.t, o.t <= s.t + 2]
        mixed = s.x.div(o.k) > rng.choice((0, 1)) if rng.random() < 0.5 else s.x + o.k * BIG > 1
        hard = [mixed] if rng.random() < 0.6 else []
        near = [*hard, *near] if rng.random() < 0.5 else [*near, *hard]
        kind = rng.choice(("join", "join", "left_join", "semi_join", "anti_join"))
        made: Relation = getattr(s, kind)(o, *near)
        names = ["s.x", "s.y", *(["o.k"] if kind in ("join", "left_join") else [])]
        if rng.random() < 0.6:
            made = made.with_(c=self.term(made, names))
            names.append("c")
        if rng.random() < 0.3:
            made = made.where(self.condition(made, names))
        if rng.random() < 0.7:
            total = rng.choice((tg.sum, tg.sum, tg.try_sum, tg.max, tg.count_distinct))(made[rng.choice(names)])
            keys = {"w": tg.tumbling(made["s.t"], rng.choice((3, 9)))} if rng.random() < 0.7 else {"w": made["s.t"]}
            made = made.group_by(**keys).agg(v=total, u=tg.sum(made["s.x"]))
            names = ["v", "u"]
            if rng.random() < 0.5:
                made = made.with_(d=self.plain(made, names).div(made["v"]))
        return made

    def plain(self, made: Relation, names: Sequence[str]) -> Expression:
        return made[self.rng.choice(names)]

    def number(self) -> int | None:
        return self.rng.choice((0, 1, 2, 3, -1, BIG, -BIG, None))

    def query(self) -> Relation:
        rng = self.rng
        made = S.as_("s")
        names = ["s.x", "s.y"]
        for number in range(rng.randint(1, 3)):
            match rng.randint(0, 3):
                case 0:
                    made = made.where(self.condition(made, names))
                case 1 | 2:
                    made = made.with_(**{f"c{number}": self.term(made, names)})
                    names.append(f"c{number}")
                case _ if "z.f" not in names:
                    z = T.as_("z")
                    on = [made["s.k"] == z.k] if rng.random() < 0.7 else []
                    hard = self.term(made, names).div(z.f) > self.term(made, names[:1])
                    on = [*on, hard] if rng.random() < 0.7 else on or [hard]
                    rng.shuffle(on)
                    kind = rng.choice(("join", "left_join", "semi_join", "anti_join"))
                    made = getattr(made, kind)(z, *on)
                    names += ["z.f"] if kind in ("join", "left_join") else []
        return self.above(made, names)

    def above(self, made: Relation, names: list[str]) -> Relation:
        rng = self.rng
        match rng.randint(0, 5):
            case 0:
                function = rng.choice((tg.count, tg.min, tg.max, tg.count_distinct))
                keys = ["s.t"] if rng.random() < 0.5 else ["s.t", "s.k"]
                grouped: Relation = made.group_by(*(made[key] for key in keys)).agg(v=function(self.term(made, names)))
                return grouped
            case 1:
                o = O.as_("o")
                return made.anti_join(o, made["s.k"] == o.k, made["s.t"] <= o.t, o.t <= made["s.t"] + 2)
            case 2:
                o = O.as_("o")
                return made.join(o, made["s.k"] == o.k, made["s.t"] <= o.t, o.t <= made["s.t"] + 2)
            case _:
                return made

    def term(self, made: Relation, names: Sequence[str], depth: int = 2) -> Expression:
        rng = self.rng
        if not depth or rng.random() < 0.3:
            return made[rng.choice(names)] if rng.random() < 0.8 else tg.lit(rng.choice((0, 1, 2)))
        one, other = (self.term(made, names, depth - 1) for _ in range(2))
        match rng.randint(0, 6):
            case 0:
                return one + other
            case 1:
                return one * other
            case 2:
                return one.div(other)
            case 3:
                return tg.coalesce(one, other)
            case 4:
                return tg.when(self.condition(made, names, depth - 1), one, other)
            case 5:
                return one.try_add(other)
            case _:
                return made["s.w"].cast("bigint")

    def condition(self, made: Relation, names: Sequence[str], depth: int = 2) -> Expression:
        rng = self.rng
        if not depth or rng.random() < 0.5:
            return self.term(made, names, depth) > self.term(made, names, 1)
        one, other = (self.condition(made, names, depth - 1) for _ in range(2))
        return rng.choice((one & other, one | other, ~one))


def batches(rows: Sequence[Row], rng: random.Random) -> list[list[Row]]:
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(rng.choice((0, 1, 3))))
    return [list(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def compare(found: Mapping[str, list[dict[str, Any]]], wanted_of: Mapping[str, list[Row]]) -> None:
    for name, wanted in wanted_of.items():
        assert bags_equal([tuple(row.values()) for row in found[name]], wanted), name


@pytest.mark.parametrize("shard", shards(4))
def test_rows_are_set_aside_as_the_reference_says(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    met: Counter[str] = Counter()
    for seed in seeds(100)[shard::4]:
        case, rng = Maker(seed).case(), random.Random(seed)
        monkeypatch.setattr(engine, "MOST_PAIRS", rng.choice((1, 5, 1 << 20)))
        monkeypatch.setattr(joins, "SMALL_PRODUCT", rng.choice((0, 20_000)))
        monkeypatch.setattr(engine, "MANY_ROWS", rng.choice((0, 3, 4096)))
        gone = Counter(row for row, fate in zip(case.rows["S"], case.fates(), strict=True) if fate)
        read = {stream.name for stream in case.program.definition.inputs}
        statics = {name: case.rows[name] for name in read & {"T"}}
        shuffled = rng.sample(case.rows["S"], len(case.rows["S"]))
        sources = {}
        if rng.random() < 0.5:  # progress moves between the batches, and no row is late
            shuffled.sort(key=lambda row: int(row[-1] or 0))
            sources["S"] = tg.source(None, delay=0)
        with Session(case.program.facts, sources=sources, statics=statics) as session:
            if "O" in read:
                session.push("O", case.rows["O"])
            for part in batches(shuffled, rng):
                session.push("S", part)
                session.step()
                counts = session.counts["S"]
                assert counts.rows_in == counts.accepted + sum(counts.rejected.values())
            session.finish()
            session.step()
            assert session.counts["S"].rejected == ({"unevaluable": gone.total()} if gone else {}), seed
            assert all(row["error"].startswith("TG30") for row in session.quarantine_rows())
            compare({name: session.results(name) for name in case.program.definition.result_names}, case.results())
        met["gone"] += bool(gone)
        met["some stay"] += len(case.rows["S"]) > gone.total() > 0
        met["results"] += any(case.results().values())
    assert min(met.values()) > 5, met


@pytest.mark.parametrize(("greatest", "rows", "tested"), [(7, 4096, False), (7, 4095, True), (BIG, 4096, True)])
def test_many_rows_with_small_integers_are_not_tested_one_by_one(
    greatest: int, rows: int, tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that says of every row that it fails is believed where one is asked."""
    doubled = S.with_(z=S.x + S.x + S.y)
    (query,) = tg.program(Q=doubled).definition.queries
    columns = {"k": 1, "x": greatest, "y": 0, "w": None, "t": 5}
    frame = pl.DataFrame({name: [value] * rows for name, value in columns.items()})
    frame = frame.with_columns(x=pl.when(pl.int_range(pl.len()) == 1).then(pl.col("x")).otherwise(1))
    found = dict(engine.failures((query.node,), frame, {}))
    assert list(found) == ([1] if greatest == BIG else [])
    monkeypatch.setattr(engine, "_test_of", lambda *_: pl.lit(value=True).alias(engine._FAILS))
    with pytest.raises(InternalError, match="TG901") if tested else nullcontext():
        assert not dict(engine.failures((query.node,), frame, {}))


def run_in_batches(case: Case, rng: random.Random) -> tuple[dict[str, list[dict[str, Any]]], Counter[tuple[str, str]]]:
    """Results, and counts of what queries set aside, whatever the batching."""
    read = {stream.name for stream in case.program.definition.inputs}
    sources = {name: tg.source(None, delay=0) for name in ("S", "O")}
    told: Counter[tuple[str, str]] = Counter()
    with Session(case.program.facts, sources=sources) as session:
        end = rng.choice((1, 3, 9))
        for start in range(0, 9, end):
            for name in sorted(read):
                rows = [row for row in case.rows[name] if start <= int(row[-1] or 0) < start + end]
                if rows:
                    session.push(name, rows)
            told.update(counted(session.step()))
        session.finish()
        told.update(counted(session.step()))
        aside = Counter((row["source"], row["reason"]) for row in session.quarantine_rows() if row["source"] != "S")
        assert aside == told
        return {name: session.results(name) for name in case.program.definition.result_names}, told


def counted(report: Any) -> Counter[tuple[str, str]]:
    return Counter({(q, reason): n for q, reasons in report.set_aside.items() for reason, n in reasons.items()})


@pytest.mark.parametrize("shard", shards(2))
def test_a_query_sets_aside_what_the_reference_says_whatever_the_batching(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time joins are made piece by piece, as those of many pairs are."""
    met: Counter[str] = Counter()
    for seed in seeds(100)[shard::2]:
        case, rng = Maker(seed).case_of_joins(), random.Random(seed)
        found, told = run_in_batches(case, rng)
        compare(found, case.lenient_results())
        with monkeypatch.context() as few:
            few.setattr(small_rows, "MOST", -1)
            few.setattr(joins, "MANY_PAIRS", 0)
            few.setattr(joins, "SMALL_PRODUCT", -1)
            few.setattr(joins, "CHUNK", rng.choice((1, 3)))
            again, told_again = run_in_batches(case, rng)
        compare(again, case.lenient_results())
        assert told == told_again, seed
        met += Counter({reason: bool(n) for (_, reason), n in told.items()})
        met["results"] += any(found.values())
    assert met["unevaluable"] > 10, met
    assert met["overflow"] > 2, met
    assert met["results"] > 10, met


def operators() -> dict[str, tg.Program]:
    """A query that gathers the rows of a join in order, with terms that have no value for some of them, beside R."""
    s, o = S.as_("s"), O.as_("o")
    pairs = s.join(o, s.k == o.k, s.t <= o.t, o.t <= s.t + 2)
    r = pairs.group_by(k=s.k, t=s.t).agg(x=tg.max(s.x), y=tg.max(s.y), n=tg.min(o.t - s.t))
    parts = r.partition_by("k", time="t")
    divided, total = tg.situation(r.x.div(r.n) >= 0), tg.situation(r.x >= 0, v=tg.sum(r.y * 2), w=tg.sum(r.x))
    named = tg.result_of("R", r).rename(x="a")
    others = named.partition_by("k", time="t").derive(
        C=tg.situation(named.a < 2, u=tg.max(named.y * named.a)), D=tg.situation(named.y < 2, u=tg.max(named.y * 2))
    )
    other = others.C
    derived = parts.derive(A=divided, B=total)
    queries = {
        "Condition": derived.A,
        "Aggregates": derived.B.select("k", "te", "v", "w"),
        "Matched": derived.match(derived.A.starts(derived.B) | derived.A.equals(derived.B), within=9),
        "Renamed": tg.match((B := derived.B).meets(other) | other.meets(B) | B.overlaps(other), within=9),
        "Read by one": others.match(others.C.before(others.D) | others.C.overlaps(others.D), within=9),
        "Above": other.group_by(t=tg.tumbling(other.te, 3)).agg(q=tg.sum(tg.lit(6).div(other.u))),
        "Before": r.over(by="k", order="t", v=tg.sum(r.x * r.y), q=tg.max(r.x.div(r.n))),
    }
    return {name: tg.program(R=r, Q=query) for name, query in queries.items()}


@pytest.mark.parametrize("name", operators())
def test_an_operator_over_a_join_sets_aside_what_the_reference_says(name: str) -> None:
    met: Counter[str] = Counter()
    program = operators()[name]
    for seed in seeds(5):
        rng = random.Random(seed)
        values = [(rng.choice((BIG, BIG, 1, 2, 0, -1, None)), rng.choice((1, 1, 2, 2, BIG))) for _ in range(18)]
        of_s = [(k % 2, x, y, None, k // 2) for k, (x, y) in enumerate(values)]
        of_o = [(k % 2, k // 2) for k in range(18) if rng.random() < 0.6]
        case = Case(program, {"S": of_s, "O": of_o, "T": []})
        found, told = run_in_batches(case, rng)
        compare(found, case.lenient_results())
        again, told_again = run_in_batches(case, rng)
        compare(again, case.lenient_results())
        assert told == told_again, seed
        met += Counter({reason: bool(n) for (_, reason), n in told.items()}) + Counter(results=any(found.values()))
    assert met["unevaluable"] > 1, met
    assert met["results"] > 1, met
    assert met["overflow"] or name != "Aggregates", met


def test_an_operator_over_a_join_that_is_to_fail_does() -> None:
    program = operators()["Aggregates"]
    for on_error in ("fail", {"Q": "fail"}):
        with program.session(on_error=on_error) as session:  # type: ignore[arg-type]
            session.push("S", [(0, BIG, BIG, None, 1)])
            session.push("O", [(0, 2)])
            session.finish()
            with pytest.raises(tg.QueryError, match=r"TG301 y \* 2: the result is out of range(.|\n)*in query +Q"):
                session.step()


@pytest.mark.long
@pytest.mark.spark
def test_rows_are_set_aside_on_spark_as_the_reference_says(spark: SparkSession, tmp_path: Path) -> None:
    names = ("k", "x", "y", "w", "t")
    for seed in (s for s in range(100) if any(Maker(s).case().fates()) and not all(Maker(s).case().fates())):
        case = Maker(seed).case()
        folder = tmp_path / str(seed)
        (folder / "S").mkdir(parents=True)
        (folder / "O").mkdir()
        for number, part in enumerate(batches(case.rows["S"], random.Random(seed))):
            columns = list(zip(*part, strict=True)) or [()] * len(names)
            pq.write_table(pa.table(dict(zip(names, columns, strict=True))), folder / "S" / f"{number}.parquet")
        k, t = zip(*case.rows["O"], strict=True)
        pq.write_table(pa.table({"k": k, "t": t}), folder / "O" / "0.parquet")
        read = {stream.name for stream in case.program.definition.inputs}
        reports: list[Any] = []
        results = case.program.definition.result_names
        case.program.start(
            spark,
            sources={name: tg.parquet(folder / name, bounded=True) for name in read - {"T"}},
            statics={"T": [dict(zip("kf", row, strict=True)) for row in case.rows["T"]]} if "T" in read else {},
            sinks={name: tg.parquet_sink(folder / "out" / name) for name in results},
            checkpoint=folder / "checkpoint",
            driver_bytes=0,
            on_batch=reports.append,
        ).awaitTermination()
        rejected = sum((Counter(report.counts["S"].rejected) for report in reports if "S" in report.counts), Counter())
        assert rejected == {"unevaluable": sum(case.fates())}, seed
        found = {
            name: [row for path in (folder / "out" / name).glob("*.parquet") for row in pq.read_table(path).to_pylist()]
            for name in results
        }
        compare(found, case.results())
        if seed > 12:
            break


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1 << 20])
def test_a_query_sets_aside_on_spark_what_it_does_embedded(
    spark: SparkSession, tmp_path: Path, shard_bytes: int
) -> None:
    s, o = S.as_("s"), O.as_("o")
    near = [s.k == o.k, s.t <= o.t, o.t <= s.t + 2]
    firsts = s.join(o, *near).group_by(k=s.k, t=s.t).agg(x=tg.max(s.x))
    program = tg.program(
        Fine=s.join(o, *near).select(s.k, s.t),
        Divided=s.join(o, *near).select(s.k, s.t, q=s.x.div(o.k)),
        Summed=s.join(o, *near).group_by(w=tg.tumbling(s.t, 4)).agg(n=tg.sum(s.x), m=tg.try_sum(s.x)),
        Derived=firsts.partition_by("k", time="t").derive(D=tg.situation(firsts.x > 0, v=tg.sum(firsts.x * 2))).D,
    )
    rows: dict[str, list[Row]] = {
        "S": [(0, 1, 1, None, 1), (1, BIG, 1, None, 2), (1, BIG, 1, None, 2), (1, 7, 1, None, 5)],
        "O": [(0, 2), (1, 3), (1, 6)],
    }
    case = Case(program, {**rows, "T": []})
    wanted, told = run_in_batches(case, random.Random(0))
    compare(wanted, case.lenient_results())
    assert told == {("Divided", "unevaluable"): 1, ("Summed", "overflow"): 1, ("Derived", "unevaluable"): 1}
    for name, names in (("S", "kxywt"), ("O", "kt")):
        (tmp_path / name).mkdir()
        columns = dict(zip(names, zip(*rows[name], strict=True), strict=True))
        pq.write_table(pa.table(columns), tmp_path / name / "0.parquet")
    results = program.definition.result_names
    reports: list[Any] = []
    program.start(
        spark,
        sources={name: tg.parquet(tmp_path / name, bounded=True) for name in rows},
        sinks={name: tg.parquet_sink(tmp_path / "out" / name) for name in results},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=0,
        shard_bytes=shard_bytes,
        on_batch=reports.append,
    ).awaitTermination()
    assert sum(map(counted, reports), Counter()) == told
    assert {place for report in reports for place in report.places.values()} >= {"driver"}
    for name in results:
        paths = (tmp_path / "out" / name).glob("*.parquet")
        found = [tuple(row.values()) for path in paths for row in pq.read_table(path).to_pylist()]
        assert bags_equal(found, [tuple(row.values()) for row in wanted[name]]), name


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1 << 20])
@pytest.mark.parametrize("failing", ["First", "Second"])
def test_readers_say_on_spark_as_embedded_what_becomes_of_rows_of_a_result_without_a_value(
    spark: SparkSession, tmp_path: Path, shard_bytes: int, failing: str
) -> None:
    """Whatever the query of the result says of its own rows."""
    s, o = S.as_("s"), O.as_("o")
    first = tg.result_of("First", s.join(o, s.k == o.k, s.t <= o.t, o.t <= s.t + 2).select(s.k, s.t))
    program = tg.program(First=first, Second=first.select(first.t, share=tg.lit(6).div(first.k)))
    rows: dict[str, dict[str, list[Any]]] = {
        "S": {"k": [0, 2], "x": [1, 1], "y": [1, 1], "w": ["", ""], "t": [1, 2]},
        "O": {"k": [0, 2], "t": [2, 3]},
    }
    for name, columns in rows.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(columns), tmp_path / name / "0.parquet")
    sources = {name: tg.parquet(tmp_path / name, bounded=True) for name in rows}
    reports: list[Any] = []
    with program.session(sources, on_error={failing: "fail"}) as session:
        query = program.start(
            spark,
            sources=sources,
            on_error={failing: "fail"},
            sinks={"Second": tg.parquet_sink(tmp_path / "out")},
            checkpoint=tmp_path / "checkpoint",
            driver_bytes=0,
            shard_bytes=shard_bytes,
            on_batch=reports.append,
        )
        for run in (session.process, query.awaitTermination):
            if failing == "Second":
                with pytest.raises(tg.QueryError, match="TG302 6 div k: division by zero"):
                    run()
            else:
                run()
        told = sum(map(counted, reports), Counter())
        assert told == ({} if failing == "Second" else {("First#0", "unevaluable"): 1})
        found = [row for path in (tmp_path / "out").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
        assert found == session.results("Second") == ([] if failing == "Second" else [{"t": 2, "share": 3}])


def test_a_query_that_is_to_fail_does() -> None:
    program = tg.program(Fine=S.select(S.t), Summed=S.group_by(w=tg.tumbling(S.t, 4)).agg(n=tg.sum(S.x)))
    rows = [(0, BIG, 1, None, 1), (0, BIG, 1, None, 1)]
    ways: tuple[Any, ...] = ("fail", {"Summed": "fail"})
    for on_error in ways:
        with program.session(on_error=on_error) as session:
            session.push("S", rows)
            session.finish()
            with pytest.raises(tg.QueryError, match=r"TG301 n: the sum is out of range(.|\n)*in query +Summed"):
                session.step()
    with program.session(on_error={"Fine": "fail"}) as session:
        session.push("S", rows)
        session.finish()
        assert session.step().set_aside == {"Summed": {"overflow": 1}}
        assert session.results("Summed") == [{"w": 4, "n": None}]
    with pytest.raises(tg.QueryError, match="TG401 Fine: unknown on_error='never'"):
        program.session(on_error="never")  # type: ignore[arg-type]
    with pytest.raises(tg.QueryError, match="TG402"):
        program.session(on_error={"Other": "fail"})


def test_rows_of_a_result_without_a_value_are_set_aside_for_its_readers() -> None:
    first = S.group_by(S.t, S.k).agg(n=tg.count())
    kept = tg.result_of("First", first)
    second = kept.select(kept.t, share=tg.lit(6).div(kept.k))
    with tg.program(First=first, Second=second).session() as session:
        session.push("S", [(0, 1, 1, None, 1), (3, 1, 1, None, 2)])
        session.finish()
        report = session.step()
        assert report.set_aside == {"First#0": {"unevaluable": 1}}
        assert session.results("Second") == [{"t": 2, "share": 2}]
        assert len(session.results("First")) == 2
        (row,) = session.quarantine_rows()
        assert row["error"] == "TG302 6 div k: division by zero: k = 0"
    with tg.program(First=first, Second=second).session(on_error={"Second": "fail"}) as session:
        session.push("S", [(0, 1, 1, None, 1)])
        session.finish()
        with pytest.raises(tg.QueryError, match="TG302"):
            session.step()


def test_what_a_selection_leaves_out_is_not_judged_and_a_pair_with_a_row_of_a_table_is() -> None:
    rows = [(0, 4, 1, None, 1), (1, 4, 1, None, 2), (2, 5, 1, None, 3)]
    guarded = tg.program(Q=S.where(S.k != 0).with_(q=S.x.div(S.k))).run({"S": rows})
    assert guarded.reports[0].counts["S"].rejected == {}
    s, z = S.as_("s"), T.as_("z")
    for kind in ("join", "anti_join"):
        made = tg.program(Q=getattr(s, kind)(z, s.k == z.k, s.x.div(z.f) >= 0).select(s.k, s.t))
        results = made.run({"S": rows, "T": [(1, 1), (2, 0), (7, 0)]})
        assert results.reports[0].counts["S"].rejected == {"unevaluable": 1}
        assert [row["k"] for row in results.rows("Q")] == ([1] if kind == "join" else [0])


@pytest.mark.parametrize("kind", ["anti", "semi", "left"])
@pytest.mark.parametrize("together", [False, True])
def test_a_partner_beyond_what_a_condition_says_of_time_is_not_looked_at(kind: str, *, together: bool) -> None:
    """The later row of O has no quotient, which stands beside what says that a partner is not later."""
    s, o = S.as_("s"), O.as_("o")
    divides = ((tg.lit(6).div(o.k) > 1) & (o.t <= s.t)) | (o.t <= s.t - 5)
    joined = getattr(s, f"{kind}_join")(o, divides, s.t <= o.t + 9)
    program = tg.program(Q=joined.select(s.t))
    rows: dict[str, list[Row]] = {"S": [(1, 1, 1, None, 3)], "O": [(2, 2), (0, 7)], "T": []}
    with program.session() as session:
        session.push("S", rows["S"])
        session.push("O", rows["O"][:1])
        for name in ("S", "O"):
            if not together:
                session.advance(name, {"t": 5})
        session.step()
        session.push("O", rows["O"][1:])
        session.finish()
        assert not session.step().set_aside
        assert [row["t"] for row in session.results("Q")] == ([] if kind == "anti" else [3])
        compare({"Q": session.results("Q")}, Case(program, rows).lenient_results())


@pytest.mark.parametrize("together", [False, True])
def test_a_row_of_a_result_is_judged_beside_its_partners_in_a_table(*, together: bool) -> None:
    """Of k = 1 the partner has no quotient. It is no partner of k = 0, whether or not both come in one batch."""
    r = tg.result_of("R", O.group_by(k=O.k, t=O.t).agg(n=tg.count()))
    a, z = r.as_("a"), T.as_("z")
    program = tg.program(Q=a.join(z, tg.lit(6).div(z.f) > a.n, a.k == z.k).select(a.k, a.t))
    rows: dict[str, list[Row]] = {"S": [], "O": [(0, 1), (1, 2)], "T": [(0, 2), (1, 0)]}
    told: Counter[tuple[str, str]] = Counter()
    with program.session(statics={"T": rows["T"]}) as session:
        for row in rows["O"]:
            session.push("O", [row])
            if not together:
                session.advance("O", {"t": row[-1]})
                told.update(counted(session.step()))
        session.finish()
        told.update(counted(session.step()))
        compare({"Q": session.results("Q")}, {"Q": Case(program, rows).lenient_results()["Q"]})
        assert [row["k"] for row in session.results("Q")] == [0]
        assert list(told.values()) == [1]


def test_rows_with_equal_operands_share_an_error_that_holds_no_frames() -> None:
    s = tg.stream("S", "x bigint, y double, t bigint", progress="t")
    node = tg.program(Q=s.with_(c=s.x / s.y)).definition.queries[0].node
    while not isinstance(node, Imbed):
        (node,) = children(node)
    rows = pl.DataFrame({"x": [1, 1, 2, 1], "y": [0.0, -0.0, 0.0, 0.0], "t": [1, 2, 3, 4]})
    walk = Lenient({})
    walk.evaluable(rows, node.term, node.input.schema, None)
    noted = [
        block.error_of(operands)
        for block in walk.aside
        if isinstance(block, SetAsideRows)
        for operands in block.operands.iter_rows(named=True)
    ]
    for errors in (dict(engine.failures((node,), rows, {})), noted):
        assert len(errors) == 4
        assert errors[0] is errors[3]
        assert [", ".join(errors[place].problems[0].because) for place in range(3)] == [
            "x = 1.0, y = 0.0",
            "x = 1.0, y = -0.0",
            "x = 2.0, y = 0.0",
        ]
        assert errors[0].__traceback__ is None
        assert errors[0].__context__ is None


def test_a_result_that_fails_does_so_in_what_it_is_made_of() -> None:
    """Its `over` stands below a grouping, so it is a query of its own, which nobody can name."""
    events = tg.stream("Events", "k bigint, t bigint, v bigint", progress="t")
    totals = events.over(by="k", order="t", total=tg.sum(events.v))
    program = tg.program(
        Total=totals.group_by(totals.t).agg(most=tg.max(totals.total)),
        Last=totals.group_by(totals.k, totals.t).agg(rows=tg.count()),
    )
    rows = {"Events": [(1, 1, 2**62), (1, 2, 2**62)]}
    failing: list[Any] = ["fail", {"Total": "fail"}, {"Last": "quarantine", "Total": "fail"}]
    for on_error in failing:
        with pytest.raises(QueryError, match="TG301"):
            program.run(rows, on_error=on_error)
    lenient: list[Any] = ["quarantine", {"Total": "quarantine"}]
    for on_error in lenient:
        assert None in [row["most"] for row in program.run(rows, on_error=on_error).rows("Total")]
