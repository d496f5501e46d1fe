"""Slips in joining events to stretches, and in finding slices that interleave."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SLICES = "runtime/plan/slices.py"
KERNEL = "runtime/kernels/stretches.py"
STATE = "runtime/embedded/operator_state.py"

GROUP = Group(
    "stretches",
    (
        "tests/runtime/test_stretching.py",
        "tests/runtime/test_operator_state.py",
        "tests/properties/test_situations.py",
    ),
    (
        bug(
            "the head of a slice is joined before others are seen",
            SLICES,
            "cls(earliest + delay, latest - delay - 1)",
            "cls(earliest, latest - delay - 1)",
        ),
        bug(
            "the head of a slice is a tick short",
            SLICES,
            "cls(earliest + delay, latest - delay - 1)",
            "cls(earliest + delay - 1, latest - delay - 1)",
        ),
        bug(
            "the tail of a slice is a tick short",
            SLICES,
            "cls(earliest + delay, latest - delay - 1)",
            "cls(earliest + delay, latest - delay)",
        ),
        bug(
            "stretches go on whatever holds",
            KERNEL,
            "if certain and begun >= 0 and holds[row] == holds[begun]:",
            "if certain and begun >= 0:",
        ),
        bug(
            "stretches begin with uncertain events",
            KERNEL,
            "first[slot] = row if certain else -1",
            "first[slot] = row",
        ),
        bug(
            "equal times are joined",
            KERNEL,
            "if before >= 0 and time <= times[before]:",
            "if before >= 0 and time < times[before]:",
        ),
        bug(
            "an event within a stretch goes unseen",
            "runtime/kernels/situations.py",
            "last[slot] = untils[row]",
            "last[slot] = time",
        ),
        bug(
            "slices that interleave are taken for equal times",
            "runtime/embedded/events.py",
            "if until is not None and not np.array_equal(time, until):",
            "if until is not None and np.array_equal(time, until):",
        ),
        bug(
            "conditions in the order of the buffer",
            "runtime/embedded/events.py",
            "for j, bit in enumerate(stretched.bits):",
            "for j, bit in enumerate(range(len(stretched.bits))):",
        ),
        bug(
            "situations by the bits of the pattern's symbols",
            "runtime/embedded/matches.py",
            "places = [ordered.node.situations.index(one) for one in definitions]",
            "places = list(range(len(definitions)))",
        ),
        bug(
            "runs of different parts of a state keep their numbers",
            STATE,
            "found.setdefault(name, []).append(rows.with_columns(pl.col(number) + first))",
            "found.setdefault(name, []).append(rows)",
        ),
        bug(
            "a share has the state of all partitions",
            STATE,
            "return tables if share is None else _shared(tables, share)",
            "return tables",
        ),
        bug(
            "parts of a state are told apart by their number alone",
            STATE,
            "return found.hash == _hash() and len(found.parts) == share.shards",
            "return len(found.parts) == share.shards",
        ),
    ),
)
