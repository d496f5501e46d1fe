"""Every kind of file of a checkpoint damaged, and documents that were tampered with: equal results, or a refusal."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.faults.scenarios import STEPS, Scenario, go_on, outcome, scenario, undisturbed
from tests.runtime.state.toy import damage_kinds, hits_state
from tidegate.algebra.errors import InternalError, TidegateError
from tidegate.runtime.engines.spark.calls import AREA, ProgressCalls
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.codec import _document, canonical
from tidegate.runtime.state.errors import DATA, INTENT, MANIFEST, StateError
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.manifest import intent_path, manifest_path, marker_path
from tidegate.runtime.state.store.local import LocalStore

KINDS = (*sorted(damage_kinds()), "stale")
#: Remembered keys; swept state and recursion; queries that feed each other.
DAMAGED = ("keyed with duplicates", "recursion", "chain of queries", "event-controlled")


def damage(kind: str, data: bytes, other: bytes) -> bytes | None:
    """The content after damage, None for no file; `other` is what another file of its kind holds."""
    return other if kind == "stale" else damage_kinds()[kind](data)


def interrupted(one: Scenario, place: Path) -> LocalStore:
    """Three batches, and an intent of the fourth."""
    store = LocalStore(place, sync=False)
    go_on(one, store, until=3)
    store.failpoints.arm("batch-after-intent", crash)
    with pytest.raises(SimulatedCrash):
        go_on(one, store)
    return LocalStore(place, sync=False)


def newest(store: LocalStore) -> list[str]:
    """The last file of each directory."""
    return list({path.rpartition("/")[0] or path: path for path in store.list_files("") if path != "lock"}.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_of_each_kind(kind: str, tmp_path: Path) -> None:
    check_damage("keyed with duplicates", kind, tmp_path, newest)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DAMAGED)
def test_any_damaged_file(name: str, kind: str, tmp_path: Path) -> None:
    check_damage(name, kind, tmp_path, lambda store: [path for path in store.list_files("") if path != "lock"])


def check_damage(name: str, kind: str, tmp_path: Path, chosen: Callable[[LocalStore], list[str]]) -> None:
    """State: a refusal that names the file. What nothing depends on any more: the same results all the same."""
    one = scenario(name)
    whole = interrupted(one, tmp_path / "whole")
    manifest = inspect(whole).manifest
    assert manifest is not None
    outputs = whole.list_files("results")
    refused = 0
    for number, path in enumerate(chosen(whole)):
        store = LocalStore(tmp_path / str(number), sync=False)
        shutil.copytree(whole.where, store.where)
        data = store.read_bytes(path)
        if not data and kind.endswith("flipped"):
            continue
        others = [p for p in store.list_files(path.rpartition("/")[0]) if p != path]
        damaged = damage(kind, data, store.read_bytes(others[0]) if others else b"of another day")
        if damaged == data:
            continue
        store.delete(path)
        if damaged is not None:
            store.write_bytes(path, damaged)
        if hits_state(manifest, path, data, damaged) or (path == intent_path(4) and damaged):
            with pytest.raises(StateError, match=re.escape(path)) as caught:
                go_on(one, store)
            assert caught.value.code in (MANIFEST, DATA, INTENT)
            assert caught.value.hint
            assert {p: store.read_bytes(p) for p in outputs} == {p: whole.read_bytes(p) for p in outputs}
            refused += 1
        else:
            failure = error_of(go_on, one, store)
            if failure is not None:
                assert isinstance(failure, StateError)
                assert path.startswith(("results", "manifests", "published", "intents")), path
                assert failure.hint
                continue
            if not path.startswith(("results", "quarantine")):  # those are with the user, and not read again
                assert outcome(one, store) == undisturbed(name)
    assert refused >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_progress_call(kind: str, tmp_path: Path) -> None:
    """A call that waits for its batch: read whole, or refused with what to do; one that is gone was not made."""
    known = {("E", "t"), ("F", "t")}
    store = LocalStore(tmp_path, sync=False)
    ProgressCalls(store, known).add({("E", "t"): 1234567})
    (path,) = store.list_files(AREA)
    data = store.read_bytes(path)
    store.delete(path)
    damaged = damage(kind, data, other_call(tmp_path / "other"))
    if damaged is not None:
        store.write_bytes(path, damaged)
    if kind in ("removed", "stale"):
        calls = ProgressCalls(store, known)
        due = calls.called().due(read=frozenset("EF"), offered=frozenset())
        assert due == ({} if kind == "removed" else {("F", "t"): 5})
    else:
        with pytest.raises(StateError, match=re.escape(path)) as caught:
            ProgressCalls(store, known)
        assert caught.value.code == DATA
        assert "make the call again" in caught.value.hint


def other_call(place: Path) -> bytes:
    store = LocalStore(place, sync=False)
    ProgressCalls(store, {("F", "t")}).add({("F", "t"): 5})
    return store.read_bytes(store.list_files(AREA)[0])


def test_a_progress_call_of_another_program(tmp_path: Path) -> None:
    ProgressCalls(LocalStore(tmp_path), {("E", "t")}).add({("E", "t"): 5})
    with pytest.raises(StateError, match="no call of this program"):
        ProgressCalls(LocalStore(tmp_path), {("E", "time")})


def error_of(use: Callable[..., object], *arguments: object) -> Exception | None:
    try:
        use(*arguments)
    except Exception as error:  # noqa: BLE001  # which one it is, is what is asked
        return error
    return None


# --- documents that were tampered with, with a checksum that fits

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**62,
    2**70,
    0.5,
    "",
    "inf",
    "../../../etc/passwd",
    "/etc/passwd",
    "segments/../../x",
    "\0",
    "\u202ex",
    "__import__('os').system('true')",
    "x" * 10_000,
    [],
    {},
    [[[[]]]],
    {"\0": {}},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    match value:
        case dict():
            for key, inner in value.items():
                yield from places(inner, (*path, key))
        case list():
            for number, inner in enumerate(value):
                yield from places(inner, (*path, number))


def tampered(body: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """The document with something else at a place, or under another key."""
    made = copy.deepcopy(body)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    if isinstance(odd, str) and isinstance(path[-1], str) and odd and len(path) % 2:
        inner[odd] = inner.pop(path[-1])
    else:
        inner[path[-1]] = odd
    return made


def sealed(kind: str, body: Any) -> bytes:
    """The document with the checksum of its body, as someone who means harm would write it."""
    return _document(kind, canonical(body))


#: One document of each kind in a run that was interrupted in its fourth batch.
DOCUMENTS = {"meta": "meta.json", "manifest": manifest_path(3), "intent": intent_path(4)}


def check_poison(kind: str, count: int, tmp_path: Path) -> None:
    """Refused as what it is, or taken for data: no other error, nothing written outside, and nothing executed."""
    one = scenario("chain of queries")
    whole = interrupted(one, tmp_path / "whole")
    path = DOCUMENTS[kind]
    body = json.loads(whole.read_bytes(path))["body"]
    every = [(place, odd) for place in places(body) for odd in ODD]
    refused = 0
    for number, (place, odd) in enumerate(random.Random(kind).sample(every, min(count, len(every)))):
        store = LocalStore(tmp_path / "poisoned" / str(number), sync=False)
        shutil.copytree(whole.where, store.where)
        store.delete(path)
        store.write_bytes(path, sealed(kind, tampered(body, place, odd)))
        for use in (lambda s: go_on(one, s, until=STEPS), list_state):
            error = error_of(use, store)
            told = f"{kind} with {odd!r:.50} at {place}: {error!r:.500}"
            assert error is None or isinstance(error, TidegateError), told
            assert not isinstance(error, InternalError), told
            refused += error is not None
        shutil.rmtree(store.where)
    assert refused
    assert sorted(p.name for p in tmp_path.iterdir()) == ["poisoned", "whole"]
    assert not list((tmp_path / "poisoned").iterdir())


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_a_poisoned_document_is_refused(kind: str, tmp_path: Path) -> None:
    check_poison(kind, 60, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_many_poisoned_documents_are_refused(kind: str, tmp_path: Path) -> None:
    check_poison(kind, 5_000, tmp_path)


def test_the_published_note_is_all_that_says_results_are_out(tmp_path: Path) -> None:
    """Results that the user took away are not missed; without the note that they were out, the run is refused."""
    one = scenario("chain of queries")
    store = LocalStore(tmp_path, sync=False)
    store.packs = False  # so few results would be gathered, and not published yet
    go_on(one, store, until=3)
    assert store.list_files("results")
    for path in store.list_files("results"):
        store.delete(path)
    go_on(one, store, until=3)
    store.delete(marker_path(3))
    with pytest.raises(StateError, match="TG508") as caught:
        go_on(one, store)
    assert marker_path(3) in caught.value.hint
