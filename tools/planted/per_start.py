"""Slips in the limit of matches that begin with one row."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

FOLDER = "algebra/ordered/sequences"
RESIDUALS = f"{FOLDER}/automata/residuals.py"
BEGINNINGS = f"{FOLDER}/per_start/beginnings.py"
EXCESS = f"{FOLDER}/per_start/excess.py"
COUNTED = f"{FOLDER}/counting/countable.py"
CHECKS = f"{FOLDER}/checks.py"
ENABLED = f"{FOLDER}/enabled.py"
NODE = f"{FOLDER}/node.py"
RUNS = f"{FOLDER}/certainty/runs.py"
GROWTH = "analysis/ordered/sequences/growth.py"
EVERY = "runtime/kernels/sequences/every.py"
COMPILED = "runtime/ordered/sequences/compiled.py"
ARRAYS = "runtime/ordered/sequences/arrays.py"
OPERATOR = "runtime/ordered/sequences/operator.py"

GROUP = Group(
    "per start",
    (
        "tests/algebra/ordered/sequences/test_per_start.py",
        "tests/algebra/ordered/sequences/test_automaton.py",
        "tests/runtime/test_per_start.py",
    ),
    (
        bug(
            "threads that no limit lets go on count",
            EVERY,
            "                    if per_start:\n                        counts[threads[a, START] - first, residuals[state]] -= 1\n",
            "",
        ),
        bug(
            "threads that may not skip a row count",
            EVERY,
            "if per_start and state > 0:",
            "if per_start and state > 99:",
        ),
        bug("counts of the partition before stay", EVERY, "counts[row - first, s] = 0", "counts[row - first, s] += 0"),
        bug(
            "matches of increments before do not count",
            EVERY,
            "if ends_here and per_start:",
            "if ends_here and per_start and time[row] > after:",
        ),
        bug(
            "matches in the making do not count",
            EVERY,
            "if counts[start - first, residuals[threads[a, STATE]]] > per_start:",
            "if counts[start - first, residuals[threads[a, STATE]]] > per_start and row < 0:",
        ),
        bug(
            "as many matches as there may be are too many",
            EVERY,
            "if counts[start - first, MATCHES] > per_start:",
            "if counts[start - first, MATCHES] >= per_start:",
        ),
        bug(
            "threads of all states count together",
            ARRAYS,
            "return [1 + numbers[frozenset((state,))] for",
            "return [1 + 0 * numbers[frozenset((state,))] for",
        ),
        bug(
            "threads count by the places of the pattern",
            ARRAYS,
            "return [1 + numbers[frozenset((state,))] for",
            "return [1 + state for",
        ),
        bug(
            "what may end goes on as what may not",
            RESIDUALS,
            "numbers = {states: int(bool(states & ends)) for states in steps}",
            "numbers = {states: 0 * len(ends) for states in steps}",
        ),
        bug(
            "beginnings are told apart by the next row alone",
            RESIDUALS,
            "if len(known) == len(set(numbers.values())):",
            "if len(known) >= len(set(numbers.values())):",
        ),
        bug(
            "the last row that begins too many is named",
            EVERY,
            "> per_start:\n                        too_many = min(too_many, start)\n                if too_many",
            "> per_start:\n                        too_many = start\n                if too_many",
        ),
        bug("matches are told to be beginnings", EVERY, "counts[too_many - first, MATCHES] > per_start\n", "False\n"),
        bug(
            "a smaller limit is asked of what is loaded",
            COMPILED,
            "reached, reached, keys, limited=False)",
            "reached, reached, keys, limited=True)",
        ),
        bug(
            "what the rule lets go is not kept",
            OPERATOR,
            "standing = replace(standing, begin=min(standing.begin, begin))",
            "standing = replace(standing, begin=max(standing.begin, begin - begin))",
        ),
        bug(
            "a partition waits for its next row",
            OPERATOR,
            "return certain, None if self.node.per_start is None else first_open(partition, standing.begin, until)",
            "return certain, None",
        ),
        bug(
            "rows that are skipped are adjacent",
            BEGINNINGS,
            'if behind and self.skipping == "contiguous":',
            'if behind and self.skipping == "never":',
        ),
        bug(
            "what fits may be skipped in a beginning",
            BEGINNINGS,
            'if self.skipping == "next" and any(',
            'if self.skipping == "never" and any(',
        ),
        bug(
            "rows that must not come take nothing away",
            BEGINNINGS,
            "if any(self._comes(absence, before, path.matched) for absence, before in path.absences):",
            "if False:",
        ),
        bug(
            "a beginning is open for as long as it was when it came",
            BEGINNINGS,
            "return self._goes_on(matched, self.since)",
            "return self._goes_on(matched, self.partition.times[matched[-1][0]])",
        ),
        bug(
            "a whole match may go on",
            ENABLED,
            "if since is None or len(word) > len(labels)",
            "if True",
        ),
        bug(
            "rows to come may come at once",
            ENABLED,
            "edges.append((len(times), zero, -since))",
            "edges.append((len(times), zero, 1 - since))",
        ),
        bug(
            "rows that begin nothing more are forgotten too early",
            EXCESS,
            "going = min(going, start)",
            "going = max(going, start)",
        ),
        bug(
            "the row that begins first is named before the one that is first too many",
            EXCESS,
            "key=lambda excess: (excess.by, excess.start,",
            "key=lambda excess: (excess.start, excess.by,",
        ),
        bug("rows of the increment before are asked again", EXCESS, "bisect_right(times, since)", "0 * since"),
        bug(
            "runs that limits have ended are searched",
            RUNS,
            "if not self.has_limit or self._may_end(longer):",
            "if True:",
            loops=True,
        ),
        bug("matches with a limit are counted", COUNTED, "if node.per_start is not None:", "if node.per_start == 0:"),
        bug("another limit is another program", NODE, "field(default=None, metadata=ADVICE)", "field(default=None)"),
        bug("conditions may read rows to come", CHECKS, "            ahead > 0,\n", "            ahead > 9,\n"),
        bug(
            "variables that exclude each other are a choice",
            GROWTH,
            "a.of == b.of and a.type == b.type and not _meet(a, b)",
            "a.of != b.of and a.type == b.type and not _meet(a, b)",
        ),
        bug(
            "an open end is among the values",
            GROWTH,
            "(order == 0 and not (low[1] and high[1]))",
            "(order == 0 and not (low[1] or high[1]))",
        ),
        bug(
            "variables that are far apart are no choice",
            GROWTH,
            "combinations(its, 2)",
            "zip(its, its[1:], strict=False)",
        ),
        bug(
            "what ends is endless",
            GROWTH,
            "return part.most is None and longest(part.part) != 0",
            "return longest(part.part) != 0",
        ),
    ),
)
