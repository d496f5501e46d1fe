"""Rows for which a term has no value: set aside one by one as the reference says, and results are those of the others.

Whatever the batching, the engine, and the queries that read the stream.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.properties.families import seeds
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.semantics import Row, bags_equal, evaluate_program, unevaluable
from tidegate.runtime.embedded import joins
from tidegate.runtime.embedded import unevaluable as engine
from tidegate.runtime.embedded.session import Session

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
                return made.group_by(*(made[key] for key in keys)).agg(v=function(self.term(made, names)))
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


def compare(found: Mapping[str, list[dict[str, Any]]], case: Case) -> None:
    for name, wanted in case.results().items():
        assert bags_equal([tuple(row.values()) for row in found[name]], wanted), name


@pytest.mark.parametrize("shard", range(2))
def test_rows_are_set_aside_as_the_reference_says(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    met: Counter[str] = Counter()
    for seed in seeds(100)[shard::2]:
        case, rng = Maker(seed).case(), random.Random(seed)
        monkeypatch.setattr(engine, "MOST_PAIRS", rng.choice((1, 5, 1 << 20)))
        monkeypatch.setattr(joins, "FEW_ROWS", rng.choice((0, 20_000)))
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
            compare({name: session.results(name) for name in case.program.definition.result_names}, case)
        met["gone"] += bool(gone)
        met["some stay"] += len(case.rows["S"]) > gone.total() > 0
        met["results"] += any(case.results().values())
    assert min(met.values()) > 10, met


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
        compare(found, case)
        if seed > 12:
            break
