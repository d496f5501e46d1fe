"""Slips in how rows are judged, and in what `why` says."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

BATCH_ADMISSION = "runtime/batch/admission.py"
ADMISSION = "runtime/ingest/admission.py"
INTAKE = "runtime/ingest/ingest.py"
KEYS = "runtime/ingest/keys.py"
WHY = "runtime/inspect/why.py"
GIVEN = "runtime/ingest/inputs.py"
PATTERNS = "algebra/typed/pattern_search.py"

GROUP = Group(
    "input",
    ("tests/properties/test_why.py", "tests/properties/test_conservation.py", "tests/runtime/test_age_guard.py"),
    (
        bug("lines of CSV end within quotes", GIVEN, "newlines_in_values=True", "newlines_in_values=False"),
        bug(
            "values of CSV are as short as what is read at once",
            GIVEN,
            "if pieces.read_bytes < block - 1 or block == _CSV_MOST or _CONVERSION in str(error):",
            "if True:",
        ),
        bug(
            "a header whose line has no end is no CSV",
            GIVEN,
            "_content(path) if only is None else",
            "_content(path) if True else",
        ),
        bug(
            "pieces of CSV end between the two bytes of a line end",
            GIVEN,
            'self.held = b"\\r" if more and piece.endswith(b"\\r") else b""',
            'self.held = b""',
        ),
        bug(
            "the end of a compressed file is that of its bytes",
            GIVEN,
            "    with _content(path) as file:\n        if file.seekable():",
            "    with pa.input_stream(path, compression=None) as file:\n        if file.seekable():",
        ),
        bug("quoted line ends are those of a header", GIVEN, '_QUOTED.sub(b"", text)', "text"),
        bug(
            "patterns are searched by going back",
            PATTERNS,
            "if own is not None and program.choices <= 1 and len(text) <= _SHORT:",
            "if own is not None:",
            loops=True,
        ),
        bug(
            "a value that is no text is looked at in larger and larger blocks",
            GIVEN,
            " or _CONVERSION in str(error)",
            "",
        ),
        bug("a file that ends with a number is whole", GIVEN, "is_open = _BEGUN.search(", "is_open = _BEGUN.match("),
        bug("a file of one column is whole", GIVEN, "if table.num_columns > 1 else", "if True else"),
        bug(
            "a set that leaves out characters is as small as one that has them",
            "algebra/functions/patterns.py",
            "(2 if others else 4)",
            "4",
        ),
        bug(
            "a backslash that stands for itself makes a letter of the next one",
            "algebra/functions/patterns.py",
            "low = self._member(escaped=escaped)",
            'low = self._member(escaped=self.text[self.place - 1] == "\\\\")',
        ),
        bug(
            "repetitions of repetitions add up",
            "algebra/functions/patterns.py",
            "(self.steps - steps) * (max(least, most or 1, 1) - 1)",
            "max(least, most or 1, 1) - 1",
        ),
        bug("a choice is no step", "algebra/functions/patterns.py", "int(least != most), start", "0, start"),
        bug(
            "an alternative of nothing is no step",
            "algebra/functions/patterns.py",
            "self._add_steps(1, self.place)",
            "self._add_steps(0, self.place)",
        ),
        bug(
            "a lazy repetition is as long as it can be",
            PATTERNS,
            "(outside, inside) if lazy else",
            "(inside, outside) if lazy else",
        ),
        bug(
            "exactly the guard ahead is ahead",
            ADMISSION,
            "tests.append((AHEAD, name, pl.col(name) > limit))",
            "tests.append((AHEAD, name, pl.col(name) >= limit))",
        ),
        bug(
            "exactly the guard behind is old",
            ADMISSION,
            "(OLD, name, pl.col(name) < floor)",
            "(OLD, name, pl.col(name) <= floor)",
        ),
        bug(
            "rows that are old are seen only beside others that are late",
            ADMISSION,
            "any(_least(rows, name) < floor for name, floor in intake.floors.items())",
            "False",
        ),
        bug(
            "what is late is late before it is old",
            ADMISSION,
            "    tests += [(OLD, name, pl.col(name) < floor) for name, floor in intake.floors.items()]\n"
            "    tests += [\n"
            "        (LATE, name, pl.lit(True) if isinstance(b, float) else pl.col(name) <= b)\n"
            "        for name, b in intake.progress.items()\n"
            "        if b != -INF\n"
            "    ]\n",
            "    tests += [\n"
            "        (LATE, name, pl.lit(True) if isinstance(b, float) else pl.col(name) <= b)\n"
            "        for name, b in intake.progress.items()\n"
            "        if b != -INF\n"
            "    ]\n"
            "    tests += [(OLD, name, pl.col(name) < floor) for name, floor in intake.floors.items()]\n",
        ),
        bug(
            "a day is old that the guard reaches into",
            "runtime/connectors/sources.py",
            "else microseconds // DAY",
            "else -(-microseconds // DAY)",
        ),
        bug(
            "progress that is ahead counts",
            ADMISSION,
            "            said = pc.if_else(beyond, pa.scalar(None, said.type), said)\n",
            "",
        ),
        bug(
            "rows whose progress is ahead are accepted",
            ADMISSION,
            "tests.append((AHEAD, column, (pl.col(column) > limit).fill_null(False)))",
            "continue",
        ),
        bug(
            "punctuation is counted as a malformed row as well",
            INTAKE,
            "of_values.filter(~pl.col(POSITION).is_in(alone))",
            "of_values",
        ),
        bug("a row without values is punctuation", ADMISSION, "    speaks = np.zeros(", "    speaks = np.ones("),
        bug(
            "duplicates are conflicts",
            KEYS,
            "(pl.col(others[name])) for name in values))",
            "(pl.col(others[name])) for name in values[:0]))",
        ),
        bug(
            "NULL in a key equals nothing",
            KEYS,
            'compared = numbered.join(accepted.rename(others), on=key, how="left", nulls_equal=True,',
            'compared = numbered.join(accepted.rename(others), on=key, how="left", nulls_equal=False,',
        ),
        bug(
            "keys are forgotten after each batch",
            BATCH_ADMISSION,
            "remembered=() if memory is None else state.segments[memory.id]",
            "remembered=()",
        ),
        bug(
            "keys are forgotten an instant too early",
            KEYS,
            "return pass_window([(name, b[name]) for name in self.instants], None, self.buffer.schema)",
            "return pass_window([(name, b[name] + 60_000_000) for name in self.instants], None, self.buffer.schema)",
        ),
        bug(
            "segments of keys go by their least instant",
            KEYS,
            "return all(bounds[name][1] > b[name] for name in self.instants)",
            "return all(bounds[name][0] > b[name] for name in self.instants)",
        ),
        bug(
            "rejected rows are remembered",
            INTAKE,
            "            seen.add(fine)\n",
            "            seen.add(rows)\n",
        ),
        bug(
            "why: a row needs one tick less",
            WHY,
            "Wait(attribute, clause.stream, y, value + d,",
            "Wait(attribute, clause.stream, y, value + d - 1,",
        ),
        bug(
            "why: distances count backwards",
            WHY,
            "Wait(attribute, clause.stream, y, value + d,",
            "Wait(attribute, clause.stream, y, value - d,",
        ),
        bug("why: any clause holds", WHY, "return min(function.clauses, key=", "return max(function.clauses, key="),
        bug(
            "why: without an input, its other clauses still count",
            WHY,
            "for candidate in function.clauses if candidate.stream != clause.stream]",
            "for candidate in function.clauses if candidate is not clause]",
        ),
        bug(
            "why: one case that excludes a row is enough",
            WHY,
            "            if not pairs:\n                return ()\n",
            "            if not pairs:\n                continue\n",
        ),
        bug(
            "a segment that ends with a key of a batch is not looked into",
            KEYS,
            "extent[1] < low or high < extent[0]",
            "extent[1] < low or high <= extent[0]",
        ),
        bug(
            "all that is remembered is looked through",
            KEYS,
            "[s for s in self.segments if keys.height and _may_hold(s.bounds, extents)]",
            "list(self.segments)",
        ),
        bug(
            "what is remembered is read again for each look",
            KEYS,
            "        self._known[segment.path] = found.rows\n",
            "",
        ),
        bug(
            "a segment that is not held is read again for its index",
            "runtime/engines/embedded/steps/segment_reader.py",
            "IndexedRows(self._as_frame(segment, rows), ",
            "IndexedRows(self._load(segment), ",
        ),
        bug(
            "rows that a batch has looked into get no index before the next one",
            "runtime/engines/embedded/steps/segment_reader.py",
            "if rows.height <= INDEXED:",
            "if rows.height <= INDEXED or known is not None:",
        ),
        bug(
            "keys of several attributes are looked up by the first",
            "runtime/eval/joins/key_index.py",
            "        hashes = hashes * _FACTOR + other\n",
            "        pass\n",
        ),
        bug(
            "what a batch repeats of itself is accepted",
            KEYS,
            "            self.of_batch.append(rows.select(self.columns))\n",
            "            pass\n",
        ),
    ),
)
