"""Documents are read exactly as they were written, or refused with what is wrong."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.state.toy import ENGINE, damage_kinds
from tidegate.algebra.errors import InternalError
from tidegate.runtime.state import codec
from tidegate.runtime.state.codec import FORMAT_VERSION, INT64_MAX, INT64_MIN, Texts, canonical, encode, plain
from tidegate.runtime.state.errors import FORMAT, INTENT, MANIFEST, StateError
from tidegate.runtime.state.inputs.positions import Offer, Positions, SourceFile, SourceOffset, SparkBatch
from tidegate.runtime.state.manifest import (
    Intent,
    KeptRows,
    Manifest,
    OperatorFiles,
    SourceCounts,
    SparkCommit,
    StagedOutput,
    decode_intent,
    decode_manifest,
    encode_intent,
    encode_manifest,
)
from tidegate.runtime.state.quarantine import DroppedTotals, Quarantine
from tidegate.runtime.state.rejects.file_tables import CLOCK, FileTable
from tidegate.runtime.state.segments import Segment, new_path
from tidegate.runtime.state.store.interface import FileRef

names = st.text(max_size=12) | st.sampled_from(["", "a.b", 'q"uote', "\0", "\u202e", "inf", "ä"])
ints = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([INT64_MIN, INT64_MAX, 0, 2**53 + 1])
counts = st.integers(0, 2**60)
extended = ints | st.sampled_from([math.inf, -math.inf])
json_values = st.recursive(
    st.none() | st.booleans() | ints | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def paths(area: str) -> st.SearchStrategy[str]:
    return st.builds(new_path, st.just(area), st.text("abc-_.é", max_size=8), st.integers(0, 2**40), st.just("a"))


segments = st.builds(
    Segment,
    path=paths("segments"),
    rows=counts,
    bytes=counts,
    checksum=names,
    schema=names,
    bounds=st.dictionaries(names, st.tuples(ints, ints), max_size=2),
    batch=counts,
    shard=counts,
)
kept_bounds = st.dictionaries(names, st.tuples(ints, ints), max_size=2)
kernel_files = st.builds(FileRef, path=paths("kernel"), bytes=counts, checksum=names)
outputs = st.builds(
    StagedOutput,
    query=names,
    file=st.builds(FileRef, path=paths("staging"), bytes=counts, checksum=names),
    rows=counts,
    name=st.just("part-1.parquet"),
)
rejected = segments.map(lambda segment: replace(segment, bounds={CLOCK: (1, 2)}))
listed = segments.map(lambda segment: replace(segment, rows=3, bounds={"oldest": (1, 2), "newest": (2, 3)}))
source_counts = st.builds(
    lambda accepted, rejected: SourceCounts(accepted + sum(rejected.values()), accepted, rejected),
    counts,
    st.dictionaries(names, counts, max_size=2),
)
spark_batches = st.none() | st.builds(SparkBatch, names, counts)
manifests = st.builds(
    Manifest,
    seq=st.just(12),
    intent=names,
    attempt=names,
    fingerprint=names,
    mode=names,
    clock=ints,
    engine=st.just(ENGINE),
    spark_batch=spark_batches,
    segments=st.dictionaries(names, st.lists(segments, max_size=2).map(tuple), max_size=2),
    kernel=st.dictionaries(
        names,
        st.builds(
            OperatorFiles,
            counts,
            st.lists(kernel_files, max_size=2).map(tuple),
            json_values,
            st.lists(st.builds(KeptRows, names, counts, kept_bounds), max_size=2).map(tuple),
        ),
        max_size=2,
    ),
    outputs=st.lists(outputs, max_size=2).map(tuple),
    quarantine=st.builds(
        Quarantine,
        st.lists(rejected, max_size=2).map(tuple),
        st.builds(DroppedTotals, counts, counts, counts, st.none() | ints),
        st.lists(st.builds(FileTable, listed, counts, counts), max_size=2).map(tuple),
        st.lists(kernel_files, max_size=2).map(tuple),
    ),
    progress=st.dictionaries(names, extended, max_size=4),
    counts=st.dictionaries(names, source_counts, max_size=2),
    batch_counts=st.dictionaries(names, source_counts, max_size=2),
    positions=st.builds(
        Positions,
        recent=st.dictionaries(
            names, st.lists(st.builds(SourceFile, names, counts, ints), max_size=2).map(tuple), max_size=2
        ),
        log=st.lists(segments, max_size=1).map(tuple),
        offsets=st.dictionaries(names, st.builds(SourceOffset, json_values, names), max_size=2),
    ),
    spark=st.dictionaries(names, st.builds(SparkCommit, counts, names), max_size=2),
    extra=st.dictionaries(names, json_values, max_size=2),
)
offers = st.builds(
    Offer,
    files=st.dictionaries(
        names, st.lists(st.builds(SourceFile, names, counts, ints), max_size=3).map(tuple), max_size=2
    ),
    offsets=st.dictionaries(names, json_values, max_size=2),
    spark=spark_batches,
)

SEGMENT, STAGED = new_path("segments", "b", 12, "a"), new_path("staging", "q", 12, "a")
SAMPLE = Manifest(
    seq=12,
    intent="i",
    attempt="a",
    fingerprint="f",
    mode="batch",
    clock=5,
    engine=ENGINE,
    spark_batch=SparkBatch("q", 3),
    segments={"b": (Segment(SEGMENT, 3, 99, "crc32:0", "s", {"t": (INT64_MIN, INT64_MAX)}, 12, 0),)},
    outputs=(StagedOutput("q", FileRef(STAGED, 7, "crc32:1"), 2, "part-1.parquet"),),
    progress={"s.t": 2**53 + 1, "idle.t": -math.inf, "done.t": math.inf},
    counts={"s": SourceCounts(3, 2, {"late": 1})},
    extra={"x": [1, None, "ü", 1.5]},
)


@given(manifests)
def test_manifest_round_trip(manifest: Manifest) -> None:
    data = encode_manifest(manifest)
    assert decode_manifest(data, 12) == manifest
    assert encode_manifest(decode_manifest(data, 12)) == data


@given(st.lists(manifests, min_size=2, max_size=4))
@settings(max_examples=30)
def test_texts_that_are_known_are_those_of_the_same_records(some: list[Manifest]) -> None:
    """Each manifest has records of the one before."""
    texts, before = Texts(), some[0]
    for manifest in some:
        now = replace(
            manifest,
            segments={**before.segments, **manifest.segments},
            gathered={"q": (*before.outputs, *manifest.outputs), "none": ()},
            positions=before.positions,
        )
        assert encode_manifest(now, texts) == signed(plain(now))
        before = now


def segment_of(number: int) -> Segment:
    return Segment(new_path("segments", "b", number, "a"), 3, 99, "crc32:0", "s", {"t": (number, number)}, number, 0)


def test_a_record_is_spelled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what a commit spells does not grow with what the manifest has."""
    spelled: list[Any] = []

    def counting(value: Any) -> str:
        spelled.append(value)
        return canonical(value)

    monkeypatch.setattr(codec, "canonical", counting)
    counted = []
    for many in (5, 200):
        texts = Texts()
        manifest = replace(SAMPLE, segments={"b": tuple(map(segment_of, range(many)))})
        encode_manifest(manifest, texts)
        spelled.clear()
        encode_manifest(replace(manifest, segments={"b": (*manifest.segments["b"], segment_of(many))}), texts)
        counted.append(len(spelled))
    assert counted[0] == counted[1]


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A record with records inside."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class _Letter:
    """A record that may have such a one inside."""

    enclosed: _Parcel | None


@pytest.mark.parametrize("count", [None, 0, 2])
def test_a_record_that_may_be_missing_is_spelled_as_what_it_is(count: int | None) -> None:
    letter = _Letter(None if count is None else _Parcel(tuple(map(segment_of, range(count)))))
    assert Texts().of(letter) == canonical(plain(letter))


def test_a_record_is_not_mistaken_for_one_that_has_gone() -> None:
    """Which may have had its place in memory."""
    texts = Texts()
    for number in range(50):
        manifest = replace(SAMPLE, segments={"b": (segment_of(number),)})
        assert encode_manifest(manifest, texts) == signed(plain(manifest))
        del manifest


def test_a_record_is_forgotten_with_the_last_document_that_has_it() -> None:
    texts, segment = Texts(), segment_of(1)
    encode_manifest(replace(SAMPLE, segments={"b": (segment,)}), texts)
    held = sys.getrefcount(segment)
    encode_manifest(SAMPLE, texts)
    assert sys.getrefcount(segment) == held - 1


@given(st.builds(Intent, seq=st.just(3), id=names, mode=names, clock=ints, offer=offers, engine=st.just(ENGINE)))
def test_intent_round_trip(intent: Intent) -> None:
    assert decode_intent(encode_intent(intent), 3) == intent


def test_every_flipped_byte_is_refused() -> None:
    data = encode_manifest(SAMPLE)
    for at in range(len(data)):
        for mask in (1, 32, 255):
            with pytest.raises(StateError) as caught:
                decode_manifest(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :], 12)
            assert caught.value.code in (MANIFEST, FORMAT)


def test_every_truncation_is_refused() -> None:
    data = encode_manifest(SAMPLE)
    for length in range(len(data)):
        with pytest.raises(StateError, match="damaged") as caught:
            decode_manifest(data[:length], 12)
        assert caught.value.code == MANIFEST
        assert "backup" in caught.value.hint


@pytest.mark.parametrize("kind", sorted(damage_kinds()))
def test_damaged_intent(kind: str) -> None:
    data = damage_kinds()[kind](encode_intent(Intent(3, "i", "batch", 0, Offer(), ENGINE)))
    if data is not None:
        with pytest.raises(StateError, match="intents/0000000003") as caught:
            decode_intent(data, 3)
        assert caught.value.code == INTENT
        assert "delete intents/0000000003.json" in caught.value.hint


def signed(body: Any, kind: str = "manifest") -> bytes:
    """A document with a right checksum around any body, as a careful attacker would write it."""
    from tidegate.runtime.state.codec import _document

    return _document(kind, canonical(body))


def body_with(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode_manifest(SAMPLE))["body"]
    body.update(changes)
    return body


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"seq": "12"}, ".seq: expected an integer, found text"),
        ({"seq": True}, ".seq: expected an integer, found true or false"),
        ({"clock": 2**63}, ".clock: integer beyond 64 bits"),
        ({"clock": 1.0}, ".clock: expected an integer, found a fraction"),
        ({"progress": {"s.t": "Infinity"}}, ".progress['s.t']: expected an integer, found text"),
        ({"progress": {"s.t": None}}, ".progress['s.t']: expected an integer, found null"),
        ({"progress": []}, ".progress: expected an object, found a list"),
        ({"segments": {"b": {}}}, ".segments['b']: expected a list, found an object"),
        ({"segments": {"b": [{}]}}, ".segments['b'][0]: key 'batch' is missing"),
        (
            {"counts": {"s": {"rows_in": 3, "accepted": 1, "rejected": {}, "punctuations": 0}}},
            ".counts['s']: counts of rows do not add up",
        ),
        (
            {"counts": {"s": {"rows_in": 0, "accepted": -1, "rejected": {"x": 1}, "punctuations": 0}}},
            ".counts['s']: counts of rows",
        ),
        ({"spark_batch": {"query_id": "q", "batch_id": 1, "x": 2}}, ".spark_batch: unknown key 'x'"),
        ({"seq": 13}, "is the manifest of batch 13"),
        (
            {
                "kernel": {
                    "o": {
                        "version": 1,
                        "files": [{"path": "../x", "bytes": 1, "checksum": ""}],
                        "values": 1,
                        "kept": [],
                    }
                }
            },
            "'../x'",
        ),
        (
            {
                "kernel": {
                    "o": {
                        "version": 1,
                        "files": [{"path": "meta.json", "bytes": 1, "checksum": ""}],
                        "values": 1,
                        "kept": [],
                    }
                }
            },
            "no state file",
        ),
        (
            {
                "outputs": [
                    {"query": "q", "file": {"path": STAGED, "bytes": 1, "checksum": ""}, "rows": 1, "name": "a/b"}
                ]
            },
            "names an output 'a/b'",
        ),
        (
            {
                "outputs": [
                    {"query": "q", "file": {"path": STAGED, "bytes": 1, "checksum": ""}, "rows": 1, "name": ".."}
                ]
            },
            "'..'",
        ),
    ],
)
def test_strict_reader(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StateError) as caught:
        decode_manifest(signed(body_with(**changes)), 12)
    assert message in caught.value.message


def test_missing_key() -> None:
    body = body_with()
    del body["extra"]
    with pytest.raises(StateError, match="key 'extra' is missing"):
        decode_manifest(signed(body), 12)


@pytest.mark.parametrize("other", [FORMAT_VERSION - 1, FORMAT_VERSION + 1])
def test_another_format_is_not_called_damage(other: int) -> None:
    """Whatever else such a document has: keys of that format, a checksum that counts its version."""
    document = json.loads(encode_manifest(SAMPLE))
    del document["body"]["extra"]
    data = json.dumps(document | {"format": other}).encode()
    with pytest.raises(StateError, match=f"has format {other}; this version of Tidegate reads format 6") as caught:
        decode_manifest(data, 12)
    assert caught.value.code == FORMAT


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"[]", "not a JSON object"),
        (b"{}", "its keys are"),
        (b"[" * 100_000, "not a document"),
        (b'{"a": NaN}', "not a document"),
        (b"\xff\xfe", "not a document"),
        (b"9" * 10_000, "not a document"),
        (signed({}, kind="intent"), "it is a 'intent', not a 'manifest'"),
        (encode("manifest", SAMPLE).replace(b'"seq":12', b'"seq": 12'), "checksum"),
        (encode("manifest", SAMPLE).replace(b'"seq":12', b'"seq":12,"seq":12'), "checksum"),
    ],
)
def test_not_a_manifest(data: bytes, message: str) -> None:
    with pytest.raises(StateError, match="manifests/0000000012") as caught:
        decode_manifest(data, 12)
    assert message in caught.value.message


def test_only_what_fits_is_written() -> None:
    for progress in (1.5, 2**63, None, "x", math.nan):
        broken: Any = {"s.t": progress}
        with pytest.raises(InternalError):
            encode_manifest(replace(SAMPLE, progress=broken))


def test_counts() -> None:
    total = SourceCounts(3, 2, {"late": 1}) + SourceCounts(5, 1, {"late": 2, "malformed": 2})
    assert total == SourceCounts(8, 3, {"late": 3, "malformed": 2})
    with pytest.raises(InternalError, match="do not add up"):
        SourceCounts(3, 2, {})


def test_manifest_files() -> None:
    state = new_path("kernel", "o", 12, "a")
    manifest = replace(SAMPLE, kernel={"o": OperatorFiles(1, (FileRef(state, 1, ""),))})
    assert [file.path for file in manifest.state_files()] == [SEGMENT, state]
    assert [file.path for file in manifest.files()] == [SEGMENT, state, STAGED]
    assert {field.name for field in fields(Manifest)} >= {"segments", "kernel", "outputs", "quarantine", "positions"}
