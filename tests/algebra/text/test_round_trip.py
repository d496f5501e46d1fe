"""Text → query → text → the same query, for random queries of the language."""

from __future__ import annotations

import pytest

import tidegate as tg
from tests.shards import shards
from tests.strategies.texts import random_query, random_stream

CASES = 100


@pytest.mark.parametrize("shard", shards(4))
def test_what_is_printed_reads_as_the_same_query(shard: int) -> None:
    """Of the random queries most are well typed; those that are not say so, and never fail otherwise."""
    read = 0
    for seed in range(CASES * shard, CASES * (shard + 1)):
        stream, text = random_stream(seed), random_query(seed)
        refused: tg.QueryError | None = None
        try:
            query = tg.read_query(text, stream, dialect="allen")
        except tg.QueryError as error:
            refused = error
        if refused is not None:
            assert refused.code in ("TG102", "TG110", "TG160"), f"seed {seed}: {text}\n{refused}"
            assert refused.site is not None
            assert refused.site.column is not None, f"seed {seed}: {text}\n{refused}"
            continue
        read += 1
        for dialect in ("allen", "tpstream"):
            printed = tg.query_text(query, dialect=dialect)
            again = tg.read_query(printed, stream, dialect=dialect)
            assert again._node == query._node, f"seed {seed}: {text}\nprinted as\n{printed}"
            assert tg.query_text(again, dialect=dialect) == printed
    assert read > CASES // 2


@pytest.mark.parametrize("seed", range(3))
def test_printed_queries_need_no_alias_and_no_comment(seed: int) -> None:
    stream = random_stream(seed)
    printed = tg.query_text(tg.read_query("FROM Events E ORDER BY E.t DEFINE A AS E.n > 1 -- more", stream))
    assert printed == "FROM Events\nORDER BY t\nDEFINE A AS n > 1\n"


def test_what_python_named_keeps_its_names() -> None:
    stream = tg.stream("S", "k bigint, t bigint, v double, on boolean", progress="t")
    most = tg.max(stream.v)
    found = stream.partition_by("k").derive(
        A=tg.situation(stream.v > 1, n=tg.count(), hi=most, max_v=most), B=tg.situation(stream.on, count=tg.count())
    )
    match = found.match(found.A.before(found.B), within=9)
    rows = {"S": [(1, 1, 2.0, False), (1, 2, 4.0, False), (1, 3, 0.0, False), (1, 4, 0.0, True), (1, 9, 0.0, False)]}
    for query in (match, match.select(match.k, match.n, most=match.hi, at=match.detected)):
        printed = tg.query_text(query)
        again = tg.read_query(printed, stream, dialect="allen")
        assert again.schema == query.schema
        assert tg.query_text(again) == printed
        one, other = (tg.program(Found=asked).run(rows).rows("Found") for asked in (query, again))
        assert one
        assert one == other
    assert 'count(A) AS "A.n"' in tg.query_text(match)
    assert "max(A.v),\n" in tg.query_text(match)
    with pytest.raises(tg.QueryError, match=r"TG175 .* detected"):
        tg.query_text(match.select(detected=match.k, at=match.detected))


def test_quotes_in_a_name_are_printed_twice() -> None:
    stream = tg.stream("Events", 't bigint, `a "b"` bigint', progress="t")
    query = tg.read_query('FROM Events DEFINE A AS "a ""b""" > 1', stream)
    printed = tg.query_text(query)
    assert printed == 'FROM Events\nORDER BY t\nDEFINE A AS "a ""b""" > 1\n'
    assert tg.read_query(printed, stream)._node == query._node


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "FROM Events DEFINE P1 AS P2 > 1, PT5M AS P2D > 1 PATTERN P1 before PT5M WITHIN 5",
            ("P1 AS P2 > 1", 'PT5M AS "P2D" > 1'),  # names of situations have no quotes, and durations stand elsewhere
        ),
        (
            "FROM Events MATCH_RECOGNIZE (ORDER BY t PATTERN (P1 PT5M) WITHIN 5 DEFINE P1 AS P2 > 1, PT5M AS P2D > 1)",
            ('PATTERN (P1 "PT5M")', "P1 AS P2 > 1", '"PT5M" AS "P2D" > 1'),
        ),
    ],
)
def test_names_that_are_durations_are_printed_in_quotes(text: str, parts: tuple[str, ...]) -> None:
    stream = tg.stream("Events", "t bigint, P2 bigint, P2D bigint", progress="t")
    query = tg.read_query(text, stream)
    printed = tg.query_text(query)
    for part in parts:
        assert part in printed
    assert tg.read_query(printed, stream)._node == query._node
