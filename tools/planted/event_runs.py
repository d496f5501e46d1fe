"""Slips in joining events into event runs, and in finding slices that interleave."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SLICES = "runtime/plan/slices.py"
KERNEL = "runtime/kernels/event_runs.py"
INTAKE = "runtime/ingest/ingest.py"
RUNNER = "runtime/batch/loop.py"
STATE = "runtime/ordered/state.py"

GROUP = Group(
    "event runs",
    (
        "tests/runtime/test_event_runs.py",
        "tests/runtime/test_operator_state.py",
        "tests/properties/test_situations.py",
        "tests/runtime/test_slices.py",
        "tests/runtime/kernels/test_event_runs.py",
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
            "event runs go on whatever holds",
            KERNEL,
            "if before < low or time > high or now != last_holds[partition]:",
            "if before < low or time > high:",
        ),
        bug(
            "event runs begin with uncertain events",
            KERNEL,
            "if before < low or time > high or now != last_holds[partition]:",
            "if time < low or time > high or now != last_holds[partition]:",
        ),
        bug(
            "equal times are joined",
            KERNEL,
            "        if time <= before:",
            "        if time < before:",
        ),
        bug(
            "rows are counted from the beginning of their block",
            KERNEL,
            "row_out[new], holds_out[new] = first + row, now",
            "row_out[new], holds_out[new] = row, now",
        ),
        bug(
            "event runs that nothing follows end where they begin",
            KERNEL,
            "until[newest[seen]] = last[seen]",
            "until[newest[seen]] = time[row[newest[seen]]]",
        ),
        bug(
            "every block has the conditions of the first",
            KERNEL,
            "_mark(self.table, self.shifts, first >> 3, out)",
            "_mark(self.table, self.shifts, 0, out)",
        ),
        bug(
            "every block has the keys of the first",
            "runtime/ordered/partitions.py",
            "keys = self._keys.slice(first, end - first)",
            "keys = self._keys.slice(0, end - first)",
        ),
        bug(
            "conditions beyond the eighth are those before",
            KERNEL,
            "np.uint64(255)) << np.uint64(low)",
            "np.uint64(255)) << np.uint64(0)",
        ),
        bug(
            "of rows stored some at a time the first are all",
            INTAKE,
            "    if len(parts) == 1:\n        return parts[0]\n    rows =",
            "    if parts:\n        return parts[0]\n    rows =",
        ),
        bug(
            "partial results of rows stored some at a time stand beside each other",
            INTAKE,
            "    return merge(buffer.partial, rows)  # one partial result per group",
            "    return rows",
        ),
        bug(
            "an event within an event run goes unseen",
            "runtime/kernels/situations.py",
            "last[partition] = untils[row]",
            "last[partition] = time",
        ),
        bug(
            "slices that interleave are taken for equal times",
            "runtime/ordered/derive/events.py",
            "if until is not None and not np.array_equal(time, until):",
            "if until is not None and np.array_equal(time, until):",
        ),
        bug(
            "slices that interleave end the batch",
            RUNNER,
            "        except InterleavedRuns:\n",
            "        except InterleavedRuns:\n            raise\n",
        ),
        bug(
            "what is read again counts twice",
            RUNNER,
            "            state = self.admission.admitted(self.state, work, ingested, clock)\n",
            "            state = self.state = self.admission.admitted(self.state, work, ingested, clock)\n",
        ),
        bug(
            "what is read again is set aside twice",
            RUNNER,
            "            batch.unstage()\n",
            "",
        ),
        bug(
            "what is read again is joined again",
            RUNNER,
            "work, seconds, joining=False)",
            "work, seconds, joining=True)",
        ),
        bug(
            "after slices interleaved the next are joined",
            RUNNER,
            "(self.interleaved is None or seq >= self.interleaved + APART)",
            "True",
        ),
        bug(
            "conditions in the order of the buffer",
            "runtime/ordered/derive/events.py",
            "for j, bit in enumerate(bits):",
            "for j, bit in enumerate(range(len(bits))):",
        ),
        bug(
            "situations by the bits of the pattern's symbols",
            "runtime/ordered/match/operator.py",
            "places = [ordered.node.situations.index(definition) for definition in definitions]",
            "places = list(range(len(definitions)))",
        ),
        bug(
            "runs of different parts of a state keep their numbers",
            STATE,
            "merged.setdefault(name, []).append(rows.with_columns(pl.col(number) + first))",
            "merged.setdefault(name, []).append(rows)",
        ),
        bug(
            "a share has the state of all partitions",
            STATE,
            "return tables if share is None else _shared(tables, described, share)",
            "return tables",
        ),
        bug(
            "parts of a state are told apart by their number alone",
            STATE,
            "return parts.hash == shard_hash() and len(parts.parts) == shards",
            "return len(parts.parts) == shards",
        ),
    ),
)
