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
AUTOMATON = "algebra/ordered/sequences/automata/automaton.py"
COMPLETIONS = "analysis/ordered/sequences/completions.py"

GROUP = Group(
    "sequence kernels",
    ("tests/runtime/test_sequence_kernels.py",),
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
            AUTOMATON,
            "found.setdefault(self.variable(way.to), set()).add(way.to)",
            "found[self.variable(way.to)] = {way.to}",
        ),
        bug(
            "a row before is the match's row before",
            MEASURES,
            "at = np.minimum(np.searchsorted(rank, wanted), max(len(rank) - 1, 0))",
            "at, wanted = matched[has] + row.step, rank[matched[has] + row.step]",
        ),
    ),
)
