"""What operators keep is shown wherever state is: counted without reading a file, and nothing is left at the
end.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import tidegate as tg
from tests.shards import shards
from tidegate import metrics, testing
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.cli.commands import main
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.derive.tables import SITUATIONS
from tidegate.runtime.ordered.state import read_state
from tidegate.runtime.ordered.table import start_operator
from tidegate.runtime.program import Program
from tidegate.runtime.state.store.local import LocalStore

readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")
found = readings.partition_by("k").derive(
    A=tg.situation(readings.x > 4, peak=tg.max(readings.x)), B=tg.situation(readings.x < 2)
)


def program(within: int | None = 20) -> Program:
    """Situations by themselves, inside another query, and in a pattern."""
    return tg.program(
        Alone=found.A,
        Counted=found.A.group_by(end=tg.ceil(found.A.te, 10)).agg(n=tg.count()),
        Pattern=tg.match(found.A.before(found.B), within=within)
        if within
        else tg.match(found.A.before(found.B), found.B.ts - found.A.te <= 8),
    )


TEXT = """\
Alone: situations: 2 rows, N bytes in 2 files
  open        2, since 1 to 6; kept until they end
  aggregates  2 partial values of these
  bound       of a partition one that is open

Counted: situations: 2 rows, N bytes in 2 files
  for         Counted (its situations), inside that query
  open        2, since 1 to 6; kept until they end
  aggregates  2 partial values of these
  bound       of a partition one that is open

Pattern: situations: 3 rows, N bytes in 2 files
  open        2, since 1 to 6; kept until they end
  over        1, ended 4; kept while a match may need them
              p(detected) is 9
              until p(detected) reaches 22
  aggregates  3 partial values of these
  bound       of a partition at most 10 A that began within 20 and are over, and one that is open
              of a partition at most 10 B that began within 20 and are over, and one that is open
"""


def test_the_listing_says_what_is_open_and_what_may_still_be_matched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[BatchReport] = []
    with program().session(checkpoint=tmp_path, on_batch=seen.append) as session:
        session.push("R", [(1, 2, 9), (1, 4, 3), (1, 6, 9), (2, 1, 7), (2, 9, 8)])
        session.advance("R", {"t": 9})
        session.step()
        live = session.live_rows()
    kept = {"Alone: situations": 2, "Counted: situations": 2, "Pattern: situations": 3}
    assert {name: rows for name, rows in live.items() if "situations" in name} == kept
    assert live == dict(seen[-1].live_rows)
    uses = {use.buffer: use for use in metrics.Metrics.of(seen[-1]).state}
    assert {name: uses[name].rows for name in kept} == kept
    assert main(["state", str(tmp_path)]) == 0
    text = re.sub(r"[\d,]+ bytes", "N bytes", capsys.readouterr().out)
    assert text.endswith(TEXT)
    assert f"held        {sum(live.values())} rows in 2 buffers and 3 operators, N bytes" in text
    assert main(["state", str(tmp_path), "--json", "--check"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows"] == sum(live.values())
    assert answer["bytes"] == sum(use.bytes for use in uses.values())
    pattern = answer["operators"][2]
    assert uses["Pattern: situations"].bytes == pattern.pop("bytes") > 0
    assert pattern.pop("bound")
    assert pattern == {
        "operator": "Pattern: situations",
        "query": "Pattern",
        "rows": 3,
        "kept": {
            "open": {"rows": 2, "start": [1, 6]},
            "closed": {"rows": 1, "start": [2, 2], "end": [4, 4], "until": {"detected": 22}},
            "values": {"rows": 3},
        },
        "progress": {"detected": 9},
    }


@pytest.mark.parametrize("within", [20, 5, None])
@pytest.mark.parametrize("seed", shards(3))
def test_counts_are_those_of_the_files_and_none_outlives_what_is_said(
    seed: int, within: int | None, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    store = LocalStore(tmp_path)
    stated: list[tuple[int | float, int]] = []
    with program(within).session(checkpoint=tmp_path, collect_garbage="exact") as session:
        shapes = {q.name: start_operator(q.ordered).described() for q in session._plan.queries if q.ordered is not None}
        for t in range(60):
            # The latter half is quiet: what is over may go, and nothing new comes.
            session.push("R", [(k, t, rng.choice((0, 3, 9)) if t < 30 else 3) for k in range(3)])
            session.advance("R", {"t": t})
            session.step()
            listing = list_state(store)
            manifest = listing.snapshot.manifest
            assert manifest is not None
            for one in listing.operators:
                tables = read_state(store, one.of.query, manifest.kernel[one.of.query], shapes[one.of.query])
                assert one.rows == sum(table.height for name, table in tables.items() if name == SITUATIONS)
                assert one.kinds[-1].kept.rows == sum(
                    table.height for name, table in tables.items() if name != SITUATIONS
                )
            _, over, _ = listing.operators[-1].kinds
            if over.kept.rows:
                stated.append((over.until, t))
            if all(until <= t for until, _ in stated):
                assert not over.kept.rows
        assert stated
        assert all(until > t for until, t in stated)
        assert not over.kept.rows


@pytest.mark.parametrize("within", [20, None])
def test_nothing_is_left_after_the_end_of_all_input(within: int | None, tmp_path: Path) -> None:
    """Whether situations that are open then are closed or not: no event can end them any more."""
    for close_at in (None, 50):
        place = tmp_path / str(close_at)
        with program(within).session(checkpoint=place) as session:
            session.push("R", [(1, 2, 9), (1, 4, 3), (1, 6, 0), (2, 1, 7), (2, 9, 8)])
            session.advance("R", {"t": 9})
            session.step()
            assert all(rows for name, rows in session.live_rows().items() if "situations" in name)
            session.finish(close_at=close_at)
            session.step()
            assert set(session.live_rows().values()) == {0}
            assert len(session.results("Alone")) == (2 if close_at else 1)
        assert {one.rows for one in list_state(LocalStore(place)).operators} == {0}
        with program(within).session(checkpoint=place) as session:
            session.step()
            assert set(session.live_rows().values()) == {0}


def test_the_test_kit_sees_an_open_situation() -> None:
    with testing.drive(program()) as run:
        run.add("R", [(1, 1, 9)])
        run.advance("R", t=60)
        run.step()
        assert run.live_rows["Pattern: situations"] == 1
        run.finish()
        run.step()
        assert set(run.live_rows.values()) == {0}
