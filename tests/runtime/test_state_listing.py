"""`tidegate state CHECKPOINT`: what is held, why, and until when; read while it runs, and refused where it is
damaged.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.time import INF
from tidegate.runtime.cli.commands import main
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.program import Program
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.codec import encode
from tidegate.runtime.state.manifest import manifest_path
from tidegate.runtime.state.meta import read_meta
from tidegate.runtime.state.store.local import LocalStore

orders = tg.stream("Orders", "order_id bigint, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
ticks = tg.stream("T", "k bigint, t bigint", progress="t")
spans = tg.stream(
    "S", "k bigint, a bigint, b bigint", progress="a", relations=lambda s: (s.a <= s.b) & (s.b <= s.a + 9)
)


def program() -> Program:
    o, p = orders.as_("o"), payments.as_("p")
    return tg.program(
        Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30)),
        PerQuarter=payments.group_by(end=tg.tumbling(payments.paid, "15m")).agg(n=tg.count()),
    )


def filled(place: Path) -> Path:
    clock = dt.datetime(2026, 3, 2, 12, 40, tzinfo=dt.UTC)
    with program().session(checkpoint=place, clock=lambda: clock) as session:
        session.push("Orders", [(1, "2026-03-02T12:00Z"), (2, "2026-03-02T12:10Z"), (3, None)])
        session.push("Payments", [(1, "2026-03-02T12:15Z"), (2, "2026-03-02T12:40Z")])
        session.advance("Orders", {"ordered": "2026-03-02T12:05Z"})
        session.advance("Payments", {"paid": "2026-03-02T12:50Z"})
        session.step()
    return place


TEXT = f"""\
checkpoint PLACE: after batch 1 by embedded {tg.__version__}
  clock       2026-03-02T12:40:00Z
  progress    Orders.ordered  2026-03-02T12:05:00Z
              Payments.paid   2026-03-02T12:50:00Z
              PerQuarter.end  2026-03-02T12:50:00.000001Z
              Unpaid.ordered  2026-03-02T12:05:00Z
  held        3 rows in 3 buffers, N bytes

buffer Orders#0: 1 row of Orders, N bytes in 1 segment
  oldest      ordered 2026-03-02T12:10:00Z
  newest      ordered 2026-03-02T12:10:00Z
  kept        for Unpaid while ordered > p(ordered)
              p(ordered) is 2026-03-02T12:05:00Z
              until p(ordered) reaches 2026-03-02T12:10:00Z

buffer Payments#0: 2 rows of Payments, N bytes in 1 segment
  oldest      paid 2026-03-02T12:15:00Z
  newest      paid 2026-03-02T12:40:00Z
  kept        for Unpaid while paid > p(ordered)
              p(ordered) is 2026-03-02T12:05:00Z
              until p(ordered) reaches 2026-03-02T12:40:00Z

buffer Payments#1: 0 partial aggregates of Payments

quarantine: 1 row, N bytes in 1 file
  oldest      2026-03-02T12:40:00Z, by the clock
  newest      2026-03-02T12:40:00Z
  rejected    Orders: 1 null, since the beginning
  to see      tidegate quarantine PLACE
"""


def test_the_listing_says_what_is_held_and_until_when(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = filled(tmp_path / "state")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert main(["state", str(place)]) == 0
    text = capsys.readouterr().out.replace(str(place), "PLACE")
    assert re.sub(r"[\d,]+ bytes", "N bytes", text) == TEXT
    assert main(["state", str(place), "--json", "--check"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert answer["quarantine"]["rejected"] == {"Orders": {"null": 1}}
    orders_buffer = answer["buffers"][0]
    manifest = inspect(LocalStore(place)).manifest
    assert manifest is not None
    assert orders_buffer["bytes"] == sum(segment.bytes for segment in manifest.segments["Orders#0"]) > 0
    del orders_buffer["bytes"]
    assert orders_buffer == {
        "buffer": "Orders#0",
        "stream": "Orders",
        "holds": "rows",
        "rows": 1,
        "segments": 1,
        "oldest": {"ordered": "2026-03-02T12:10:00Z"},
        "newest": {"ordered": "2026-03-02T12:10:00Z"},
        "kept": [
            {
                "query": "Unpaid",
                "while": "ordered > p(ordered)",
                "progress": {"ordered": "2026-03-02T12:05:00Z"},
                "until": {"ordered": "2026-03-02T12:10:00Z"},
                "needed": True,
            }
        ],
    }


def test_rows_that_were_dropped_are_counted_by_reason(tmp_path: Path) -> None:
    dropping = {"Orders": tg.source(None, policy="drop", delay="1m")}
    with program().session(checkpoint=tmp_path / "state", sources=dropping) as session:
        session.push("Orders", [(1, "2026-03-02T12:00Z"), (2, "x"), (3, None), (4, None)])
        session.step()
    text = str(list_state(LocalStore(tmp_path / "state")))
    assert text.endswith("quarantine: 0 rows\n  rejected    Orders: 2 null, 1 unparseable, since the beginning")


def earlier() -> Program:
    """Ticks with another one of their key in the seven before."""
    a, b = ticks.as_("a"), ticks.as_("b")
    return tg.program(Pair=a.semi_join(b, a.k == b.k, b.t < a.t, a.t <= b.t + 7).unqualified())


def within() -> Program:
    """Ticks inside spans, in the order of the ticks."""
    t, s = ticks.as_("t"), spans.as_("s")
    return tg.program(Within=t.join(s, t.k == s.k, s.a <= t.t, t.t <= s.b).select(k=t.k, t=t.t, a=s.a))


def windows() -> Program:
    return tg.program(Windows=ticks.group_by(end=tg.tumbling(ticks.t, 10)).agg(n=tg.count()))


def touches() -> Program:
    """Ticks at either end of a span: two cases, of which the later one keeps a span longer."""
    t, s = ticks.as_("t"), spans.as_("s")
    return tg.program(Touch=t.semi_join(s, t.k == s.k, (s.a == t.t) | (s.b == t.t)).unqualified())


@pytest.mark.parametrize("made", [earlier, within, windows, touches])
def test_a_buffer_is_needed_up_to_the_stated_progress_and_no_further(
    made: Callable[[], Program], tmp_path: Path
) -> None:
    """Before some reader's stated progress is reached the newest row stays; when all have reached theirs, nothing
    does.
    """
    program = made()
    streams = program.facts.program.inputs
    outcomes: dict[str, set[bool]] = {}
    with program.session(checkpoint=tmp_path, collect_garbage="exact") as session:
        for stream in streams:
            session.push(stream.name, [(1, 3), (1, 8)] if stream.name == "T" else [(1, 2, 9), (1, 4, 11)])
        session.step()
        stated = {one.held.buffer: [kept.until for kept in one.kept] for one in list_state(session._store).buffers}
        for instant in range(40):
            for stream in streams:
                session.advance(stream.name, {stream.progress[0]: instant})
            session.step()
            (reached,) = session.progress.values()
            for one in list_state(session._store).buffers:
                needed = any(all(reached[a] < t for a, t in until.items()) for until in stated[one.held.buffer])
                assert bool(one.rows) == needed == any(not kept.over for kept in one.kept)
                outcomes.setdefault(one.held.buffer, set()).add(needed)
    assert outcomes == {name: {True, False} for name in stated}


def test_a_query_that_needs_nothing_any_more_is_told(tmp_path: Path) -> None:
    with windows().session(checkpoint=tmp_path, collect_garbage="off") as session:
        session.push("T", [(1, 3)])
        session.advance("T", {"t": 9})  # the window that ends at 10 is final, and no tick more
        session.step()
        assert "until" not in str(list_state(session._store))
        assert "which needs none of it any more" in str(list_state(session._store))


def test_rows_remembered_for_a_key_are_listed(tmp_path: Path) -> None:
    sources = {"T": tg.source(None, delay=5, key=["k", "t"])}
    with windows().session(checkpoint=tmp_path, sources=sources, collect_garbage="exact") as session:
        session.push("T", [(1, 12), (1, 16)])
        session.step()
        listing = list_state(session._store)
        assert [(one.held.buffer, one.rows) for one in listing.buffers] == list(session.live_rows().items())
        for reached, rows in ((15, 1), (16, 0)):
            session.advance("T", {"t": reached})
            session.step()
            assert session.live_rows()["keys of T"] == rows
    assert str(listing).endswith(
        "kept        until they are late, since no other row may repeat their k, t\n              p(t) is "
        "10\n              until p(t) reaches 16"
    )


def test_a_running_checkpoint_is_listed_without_its_lock(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with program().session(checkpoint=tmp_path) as session:
        empty = list_state(store)
        assert "no batch is committed yet" in str(empty)
        assert {one.rows for one in empty.buffers} == {0}
        failures: list[BaseException] = []
        seen: set[int] = set()
        done = threading.Event()

        def look() -> None:
            try:
                while not done.is_set():
                    manifest = list_state(LocalStore(tmp_path)).snapshot.manifest
                    seen.add(0 if manifest is None else manifest.seq)
            except BaseException as error:
                failures.append(error)
                raise

        looking = threading.Thread(target=look)
        looking.start()
        for minute in range(40):
            session.push("Orders", [(minute, f"2026-03-02T12:{minute:02}Z")])
            session.advance("Orders", {"ordered": f"2026-03-02T12:{minute:02}Z"})
            session.advance("Payments", {"paid": f"2026-03-02T12:{minute:02}Z"})
            session.step()
            assert {one.held.buffer: one.rows for one in list_state(store).buffers} == session.live_rows()
        done.set()
        looking.join()
    assert failures == []
    assert len(seen) > 1


def refused(place: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["state", str(place), *options]) == 1
    text = capsys.readouterr().err
    assert main(["state", str(place), *options, "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert text.startswith(f"{problem['code']} {problem['message']}")
    return text


def test_what_is_no_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(tmp_path / "absent", capsys).startswith("TG504 there is no checkpoint in")
    assert not (tmp_path / "absent").exists()
    (tmp_path / "notes.txt").write_text("mine")
    text = refused(tmp_path, capsys)
    assert text.startswith("TG500")
    assert "name the directory that was given as checkpoint" in text
    assert refused(tmp_path / "notes.txt", capsys).startswith("TG500")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def damaged(name: str, path: str, change: Callable[[bytes], bytes | None], *options: str) -> str:
        place = filled(tmp_path / name)
        (victim,) = place.glob(path)
        changed = change(victim.read_bytes())
        victim.unlink() if changed is None else victim.write_bytes(changed)
        return refused(place, capsys, *options)

    assert damaged("a", "meta.json", lambda old: old[:-9]).startswith("TG504 meta.json is damaged")
    assert damaged("b", "meta.json", lambda _: None).startswith("TG504 meta.json is missing")
    assert damaged("c", manifest_path(1), lambda old: old.replace(b'"rows":1', b'"rows":3', 1)).startswith("TG504")
    assert damaged("d", "packs/*", lambda _: None).startswith("TG505")
    assert damaged("e", "packs/*", lambda old: old[:-1]).startswith("TG505")
    flipped = "packs/*", lambda old: old[:20] + bytes([old[20] ^ 1]) + old[21:]
    assert damaged("f", *flipped, "--check").startswith("TG505")


@pytest.mark.parametrize(
    "poison",
    [
        None,
        {"buffers": [], "inputs": {}, "queries": {}},
        "an unknown kind",
        "a query that is not there",
    ],
)
def test_a_layout_that_does_not_fit_is_refused(poison: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = LocalStore(filled(tmp_path))
    meta = read_meta(store)
    assert meta is not None
    layout = json.loads(json.dumps(meta.layout))
    match poison:
        case "an unknown kind":
            layout["inputs"]["Orders"]["ordered"] = "moon"
        case "a query that is not there":
            layout["buffers"][0]["readers"][0]["query"] = "Nothing"
        case _:
            layout = poison
    (tmp_path / "meta.json").write_bytes(encode("meta", replace(meta, layout=layout)))
    assert refused(tmp_path, capsys).startswith("TG504 the layout in meta.json")


def test_a_checkpoint_that_was_made_before_parts_had_names_is_listed(tmp_path: Path) -> None:
    store = LocalStore(filled(tmp_path))
    meta = read_meta(store)
    assert meta is not None
    assert isinstance(meta.layout, dict)
    before = str(list_state(store))
    layout = {key: value for key, value in meta.layout.items() if key != "names"}
    (tmp_path / "meta.json").write_bytes(encode("meta", replace(meta, layout=layout)))
    assert str(list_state(store)) == before


def test_dates_and_integers_are_written_as_such(tmp_path: Path) -> None:
    days = tg.stream("Days", "day date", progress="day")
    with tg.program(Busy=days.group_by("day").agg(n=tg.count())).session(checkpoint=tmp_path / "d") as session:
        session.push("Days", [("2026-03-02",)])
        session.step()
        text = str(list_state(session._store))
    assert "oldest      day 2026-03-02\n" in text
    assert "p(day) is -∞\n              until p(day) reaches 2026-03-02" in text
    with windows().session(checkpoint=tmp_path / "t") as session:
        session.push("T", [(1, 12)])
        session.step()
        listing = list_state(session._store)
    assert listing.buffers[0].kept[0].until == {"end": 20}
    assert listing.buffers[0].kept[0].progress == {"end": -INF}
    assert listing.to_dict()["buffers"][0]["newest"] == {"end": 20}  # type: ignore[index]  # plain values
