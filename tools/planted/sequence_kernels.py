"""Slips in the compiled search for row patterns."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

EVERY = "runtime/kernels/sequences/every.py"
SEARCH = "runtime/kernels/sequences/preferred.py"
THREADS = "runtime/kernels/sequences/threads.py"
MACHINE = "runtime/kernels/sequences/machine.py"
ROWS = "runtime/ordered/sequences/rows.py"
COMPILED = "runtime/ordered/sequences/compiled.py"
MEASURES = "runtime/ordered/sequences/measures.py"
TABLES = "analysis/ordered/sequences/tables.py"
DETERMINISTIC = "analysis/ordered/sequences/deterministic.py"
OPEN = "runtime/kernels/sequences/open_searches.py"
GOES_ON = "runtime/ordered/sequences/open_searches.py"
OPERATOR = "runtime/ordered/sequences/operator.py"
ARRAYS = "runtime/ordered/row_arrays.py"
DESCRIBED = "runtime/ordered/state_tables.py"
COMPLETIONS = "analysis/ordered/sequences/completions.py"

GROUP = Group(
    "sequence kernels",
    (
        "tests/runtime/test_sequence_kernels.py",
        "tests/runtime/test_open_searches.py",
        "tests/runtime/test_row_arrays.py",
    ),
    (
        bug("a thread ends a tick early", SEARCH, "threads[a, DEATH] < time[row]", "threads[a, DEATH] <= time[row]"),
        bug(
            "a match does not wait for a limit that is to come",
            SEARCH,
            "if latest > options[UNTIL]:",
            "if latest > options[UNTIL] and best == NONE:",
        ),
        bug(
            "less preferred threads go on behind a match",
            SEARCH,
            "            if matched:\n                break\n        current",
            "        current",
        ),
        bug("earlier starts decide nothing", SEARCH, "detected = floor if", "detected = at if"),
        bug(
            "threads of one state are alike",
            SEARCH,
            "if threads[b, r] != threads[its, r]:",
            "if threads[b, r] != threads[b, r]:",
        ),
        bug("partitions wait for their next row", SEARCH, "due = min(due, at)", "due = min(due, NO_LOOK)"),
        bug("the first row is the last", THREADS, "REGISTERS + numbers[k]] < 0:", "REGISTERS + numbers[k]] < row:"),
        bug(
            "the last row but one is the last",
            THREADS,
            "for k in range(begin + count - 1, begin, -1):",
            "for k in range(0):",
        ),
        bug(
            "a row of no variable yet is none to come",
            THREADS,
            "(comes_later and (limits[k, 0] == LAST_OF or later < 0))",
            "(comes_later and limits[k, 0] == LAST_OF)",
        ),
        bug("sums wrap around", MACHINE, "if (b > 0 and a > _GREATEST - b) or", "if False or"),
        bug("products wrap around", MACHINE, "return abs(a) > most and not is_least", "return False"),
        bug(
            "decimals of several rows have any number of digits",
            MACHINE,
            "if first != 0 and (value",
            "if False and (value",
        ),
        bug(
            "nothing equals NaN",
            MACHINE,
            "if a != a or b != b:",
            "if a != a and b != b:\n        return 1\n    if a != a or b != b:",
        ),
        bug(
            "or asks for the second before the first",
            MACHINE,
            "if mark[top] == FAILED or (mark[top] == VALUE and stack[top] == ends):",
            "if mark[top] == VALUE and stack[top] == ends:",
        ),
        bug("a row before is of any partition", ROWS, "has[at[at < self.offsets[1:]]] = False", "pass"),
        bug("rows before are not kept", COMPILED, "standings.begin - self.back, 0)", "standings.begin, 0)"),
        bug(
            "each increment counts from one", COMPILED, '"number": standings.number,', '"number": 0 * standings.number,'
        ),
        bug(
            "a measure reads the partition before",
            MEASURES,
            "places[places < self.rows.offsets[self.found.partition[self.match]]] = -1",
            "places[places < 0] = -1",
        ),
        bug(
            "a condition of a row to come is open", TABLES, "if not any(_reads_row(", "if False and not any(_reads_row("
        ),
        bug(
            "what is less preferred than the end is waited for",
            COMPLETIONS,
            "for some in (ways, ways[:upto])",
            "for some in (ways, ways)",
        ),
        bug("what fits may be skipped", EVERY, "(skips == NEXT and goes_on)", "(skips == NEXT and row < 0)"),
        bug(
            "what the limits forbid is not skipped",
            EVERY,
            "if not ends and death < time[row]:",
            "if False:",
        ),
        bug("adjacent rows may be apart", EVERY, "skips == CONTIGUOUS or", "skips < CONTIGUOUS or"),
        bug("a match is found again in the next increment", EVERY, "if ends and time[row] > after:", "if ends:"),
        bug(
            "rows are kept while a match is searched for",
            EVERY,
            "if threads[a, DEATH] > until:",
            "if threads[a, DEATH] > NEVER:",
        ),
        bug(
            "a state is a state of the pattern",
            DETERMINISTIC,
            "following.setdefault(of.variable(way.to), set()).add(way.to)",
            "following[of.variable(way.to)] = {way.to}",
        ),
        bug(
            "a row before is the match's row before",
            MEASURES,
            "at = np.minimum(np.searchsorted(rank, wanted), max(len(rank) - 1, 0))",
            "at, wanted = matched[has] + row.step, rank[matched[has] + row.step]",
        ),
        bug(
            "an open search goes on behind its threads' rows as if they were the last",
            OPEN,
            "start, offsets[p + 1], first_new[p], size, time",
            "start, offsets[p + 1], max(first_new[p], offsets[p + 1] - 1), size, time",
        ),
        bug("an open search is never due", OPEN, "waits[p], look[p] = size, at", "waits[p], look[p] = size, 1 << 62"),
        bug(
            "of the threads of an open search the first goes on",
            OPEN,
            "threads[k, r] = given[before[p] + k, r]",
            "threads[k, r] = given[before[p], r]",
        ),
        bug(
            "threads of open searches count from the first row of the table",
            COMPILED,
            "threads[:, named] - before)",
            "threads[:, named])",
        ),
        bug(
            "threads stay where rows before them go",
            COMPILED,
            "before = np.repeat(rows.offsets[:-1] + first, waits)",
            "before = np.repeat(rows.offsets[:-1], waits)",
        ),
        bug("rows before those of threads are not read", GOES_ON, "- np.arange(back + 1)", "- np.arange(1)"),
        bug(
            "rows before the new ones are not read",
            GOES_ON,
            "height[:, None] - 1 - np.arange(max(back, 1))",
            "height[:, None] - 1 - np.arange(1)",
        ),
        bug(
            "threads keep the places of the table",
            GOES_ON,
            "left[:, self.calls.named] = needed.in_partition(self._named(left), rows)",
            "pass",
        ),
        bug(
            "rows of searches that go on are searched again",
            OPERATOR,
            "partitions = partitions[~np.isin(partitions, added.partitions, assume_unique=True)]",
            "pass",
        ),
        bug("what is added replaces what was there", OPERATOR, "pl.lit(ADDED, pl.Int64)", "pl.lit(0, pl.Int64)"),
        bug(
            "what was added says where the search begins",
            OPERATOR,
            "stored = replace(stored, rows=stored.rows.with_columns(said))",
            "pass",
        ),
        bug(
            "rows that are added go with those before",
            DESCRIBED,
            "pl.col(_LAYER) >= pl.col(_LAYER)",
            "pl.col(_LAYER) == pl.col(_LAYER)",
        ),
        bug("rows stay where there is no room", ARRAYS, "            column.move(at, to)\n", ""),
    ),
)
