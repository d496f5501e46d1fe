"""Slips in knowing rows that are pushed again, and text that is none."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

DIGESTS = "runtime/engines/embedded/digests.py"
RAW = "runtime/ingest/raw_rows.py"

GROUP = Group(
    "pushed",
    ("tests/runtime/test_digests.py", "tests/runtime/test_frames.py", "tests/runtime/test_columns.py"),
    (
        bug(
            "words of 64 bits are summed",
            DIGESTS,
            """    whole = len(data) // (_WORDS * 4) * _WORDS
    if whole:
        words = np.frombuffer(data, np.uint32, whole).reshape(-1, _WORDS)""",
            """    whole = len(data) // (_WORDS * 8) * _WORDS * 2
    if whole:
        words = np.frombuffer(data, np.uint64, whole // 2).reshape(-1, _WORDS)""",
        ),
        bug("the rest of a column does not count", DIGESTS, "    digest.update(memoryview(data)[whole * 4 :])\n", ""),
        bug(
            "a slice has the bytes of all",
            DIGESTS,
            "[array.offset * width : (array.offset + len(array)) * width]",
            "[:]",
        ),
        bug("NULLs are told by what lies behind them", DIGESTS, "    if array.null_count:\n", "    if False:\n"),
        bug("types do not count", DIGESTS, 'f"{array.type} {len(array)}"', 'f"{len(array)}"'),
        bug(
            "mixtures are made one type",
            DIGESTS,
            "if len(types) != 1 or not types <= {*_PLAIN}:",
            "if not types <= {*_PLAIN}:",
        ),
        bug("what was noted of frames does not count", DIGESTS, "repr(sorted(noted.items()))", "repr(sorted(noted))"),
        bug("malformed text does not count", DIGESTS, "value.reason, value.text) for", "value.reason) for"),
        bug(
            "a discard forgets frames",
            "runtime/engines/embedded/pending_input.py",
            "        self.pushed.clear()\n",
            "        self.pushed.clear()\n        self.frames.clear()\n",
        ),
        bug(
            "a frame does not end its stream",
            "runtime/engines/embedded/pending_input.py",
            "for name in self.frames for a in",
            "for name in () for a in",
        ),
        bug(
            "two values make a character together",
            RAW,
            " or (text[starts[: np.searchsorted(starts, last)] - first] < _CONTINUED).any()",
            "",
        ),
        bug("the last byte that goes on begins a character", RAW, "_CONTINUED = -64", "_CONTINUED = -65"),
        bug("bytes beyond ASCII are ASCII", RAW, "text.min() >= 0", "text.max() >= 0"),
    ),
)
