"""Slips in the compiled search for row patterns."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

ABSENCES = "runtime/kernels/sequences/absences.py"
AHEAD = "runtime/kernels/sequences/ahead.py"
EVERY = "runtime/kernels/sequences/every.py"
PENDING = "runtime/kernels/sequences/pending.py"
SEARCH = "runtime/kernels/sequences/preferred.py"
THREADS = "runtime/kernels/sequences/threads.py"
MACHINE = "runtime/kernels/sequences/machine.py"
VERDICTS = "runtime/ordered/sequences/ahead.py"
ROWS = "runtime/ordered/sequences/rows.py"
OPERATOR = "runtime/ordered/sequences/operator.py"
COMPILED = "runtime/ordered/sequences/compiled.py"
MEASURES = "runtime/ordered/sequences/measures.py"
PROGRAMS = "analysis/ordered/sequences/programs.py"
DEMANDS = "analysis/ordered/sequences/demands.py"
COMPLETIONS = "analysis/ordered/sequences/completions.py"
TABLES = "analysis/ordered/sequences/tables.py"
AUTOMATON = "algebra/ordered/sequences/automata/automaton.py"
DETERMINISTIC = "analysis/ordered/sequences/deterministic.py"
WAYS = "analysis/ordered/sequences/ways.py"
LISTED = "runtime/kernels/sequences/listed.py"
LISTABLE = "runtime/ordered/sequences/listed.py"
TOLD = "runtime/ordered/sequences/told.py"
OPEN = "runtime/kernels/sequences/open_searches.py"
GOES_ON = "runtime/ordered/sequences/open_searches.py"
KEPT = "runtime/ordered/sequences/kept.py"
FOUND = "runtime/ordered/sequences/found.py"
NODES = "runtime/ordered/sequences/nodes.py"
ARRAYS = "runtime/ordered/row_arrays.py"
DESCRIBED = "runtime/ordered/state_tables.py"

GROUP = Group(
    "sequence kernels",
    (
        "tests/runtime/test_sequence_conditions.py",
        "tests/runtime/test_sequence_kernels.py",
        "tests/runtime/test_open_searches.py",
        "tests/runtime/test_failed_searches.py",
        "tests/runtime/test_listed_matches.py",
        "tests/runtime/test_row_arrays.py",
    ),
    (
        bug("a thread ends a tick early", SEARCH, "latest < time[row]:", "latest <= time[row]:"),
        bug(
            "a match does not wait for a limit that is to come",
            SEARCH,
            "if over > until:",
            "if over > until and best == NONE:",
        ),
        bug(
            "less preferred threads go on behind a match",
            SEARCH,
            "            if ended:\n                break\n        current",
            "        current",
        ),
        bug("earlier starts decide nothing", SEARCH, "at = max(at, hidden, inside)", "at = max(at, inside)"),
        bug(
            "threads of one state are alike",
            SEARCH,
            "if threads[b, r] != threads[its, r]:",
            "if threads[b, r] != threads[b, r]:",
        ),
        bug("partitions wait for their next row", SEARCH, "due = min(due, over)", "due = min(due, NO_LOOK)"),
        bug(
            "partitions with open matches wait for their next row",
            SEARCH,
            "due = min(due, pending[k, FATE])",
            "due = min(due, NO_LOOK)",
        ),
        bug("later starts are not inside open matches", SEARCH, "at = max(at, hidden, inside)", "at = max(at, hidden)"),
        bug("numbers are known before earlier matches", SEARCH, "detected = settled if", "detected = at if"),
        bug(
            "rows before a match may be any",
            SEARCH,
            "if state == 0 and guards[k, ASKED] & come[start]:",
            "if state == 0 and guards[k, ASKED] & come[start] & 0:",
        ),
        bug(
            "threads go on whose conditions have turned out not to hold",
            SEARCH,
            "if a == current + size or threads[a, GONE] <= row:",
            "if a == current + size:",
        ),
        bug(
            "threads are alike whatever decides them",
            SEARCH,
            "for r in range(SURE, width):\n                            if",
            "for r in range(REGISTERS, width):\n                            if",
        ),
        bug(
            "a match is one before its conditions are decided",
            SEARCH,
            "if at_once and threads[its, SURE] < 0 and threads[its, GONE] == NOWHERE:",
            "if at_once:",
        ),
        bug(
            "the first row that may not come is the only one",
            ABSENCES,
            "place = following[a, place]",
            "place = -1",
        ),
        bug(
            "rows that must not come may come with the last tick",
            ABSENCES,
            "time[place] <= over:",
            "time[place] < over:",
        ),
        bug(
            "rows before a match may come with the first tick",
            ABSENCES,
            "time[row] - time[last] <= absences[a, DURATION]:",
            "time[row] - time[last] < absences[a, DURATION]:",
        ),
        bug("a row behind the last one is no row", ABSENCES, "gone = min(gone, row + 1)", "gone = gone"),
        bug(
            "durations decide before conditions do",
            ABSENCES,
            "decided = max(decided, time[sure] if sure < end else EVER)",
            "decided = max(decided, time[row])",
        ),
        bug(
            "a row that must not come has no row of the match",
            ABSENCES,
            "    match_row(threads, scratch, variable, row, groups, numbers, int_columns, double_columns, marks, stack, "
            "double_stack)\n",
            "",
        ),
        bug("a comparison is known with its own row", AHEAD, "at + reads[r, 1])", "at)"),
        bug("of several rows behind the nearest decides", AHEAD, "place = max(place, at +", "place = max(0, at +"),
        bug(
            "what is not known yet does not hold",
            AHEAD,
            "            threads[thread, SURE] = end\n            continue",
            "            return False",
        ),
        bug(
            "rows of other partitions are behind",
            VERDICTS,
            "outcomes.decided & (here + step < end)",
            "outcomes.decided",
        ),
        bug("a failure does not hold", VERDICTS, "self.none | (on & other.none),", "self.none,"),
        bug("NULL is behind the last row", VERDICTS, "    if closed:\n        true =", "    if True:\n        true ="),
        bug(
            "open matches of the same rows are waited for",
            PENDING,
            "        elif not same:\n",
            "        else:\n",
        ),
        bug(
            "open matches of as many rows are the same",
            PENDING,
            "same = same and same_rows(",
            "same = same or same_rows(",
        ),
        bug(
            "threads behind an open match outlive it",
            PENDING,
            "latest = max(latest, min(threads[a, DEATH], matched))",
            "latest = max(latest, threads[a, DEATH])",
        ),
        bug(
            "the search comes to where it would after a match that is none",
            PENDING,
            "else min(matched, pending[k, FATE])",
            "else matched",
        ),
        bug(
            "an open match that is none stays before others",
            PENDING,
            "            elif pending[waiting + seen, IS_MATCH]:",
            "            else:",
        ),
        bug("the first row is the last", MACHINE, "REGISTERS + numbers[k]] < 0:", "REGISTERS + numbers[k]] < row:"),
        bug(
            "the last row but one is the last",
            MACHINE,
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
        bug(
            "a row before is of any partition",
            ROWS,
            "lacks[at[(at < self.offsets[1:]) & (at >= self.offsets[:-1])]] = True",
            "pass",
        ),
        bug("rows before are not kept", COMPILED, "np.maximum(begin - self.back, 0)", "np.maximum(begin, 0)"),
        bug(
            "each increment counts from one", COMPILED, '"number": standings.number,', '"number": 0 * standings.number,'
        ),
        bug(
            "a measure reads the partition before",
            MEASURES,
            "places[places < self.rows.offsets[self.found.partition[self.match]]] = -1",
            "places[places < 0] = -1",
        ),
        bug("a condition of a row to come is open", TABLES, "if not every and not any(", "if False and not any("),
        bug(
            "what is less preferred than the end is waited for",
            WAYS,
            "[*places, len(state.transitions)]",
            "[len(state.transitions) for _ in range(len(places) + 1)]",
        ),
        bug("what fits may be skipped", EVERY, "(skips == NEXT and goes_on)", "(skips == NEXT and row < 0)"),
        bug(
            "what the limits forbid is not skipped",
            EVERY,
            "if not ends_here and death < time[row]:",
            "if False:",
        ),
        bug("adjacent rows may be apart", EVERY, "skips == CONTIGUOUS or", "skips < CONTIGUOUS or"),
        bug(
            "a match is found again in the next increment",
            EVERY,
            "elif detected > after and detected < NO_LOOK:",
            "elif detected < NO_LOOK:",
        ),
        bug(
            "a match that waits is let go",
            EVERY,
            "min(undecided, start), min(decided_at, detected)",
            "min(undecided, end), min(decided_at, detected)",
        ),
        bug(
            "every match is looked at with the next row",
            EVERY,
            "min(undecided, start), min(decided_at, detected)",
            "min(undecided, start), decided_at",
        ),
        bug("what must not come between two may", EVERY, "threads[a, HIT] |= 1 << n", "threads[a, HIT] |= 0"),
        bug(
            "what must not come before a row lets it be skipped",
            EVERY,
            "                        if threads[total, SURE] == end and not closed:",
            "                        if ending[following] & IS_VAIN:\n                            continue\n"
            "                        if threads[total, SURE] == end and not closed:",
        ),
        bug(
            "rows are skipped before they are known not to fit",
            EVERY,
            "threads[a, SURE] = max(threads[a, SURE], known)",
            "known = -1",
        ),
        bug(
            "matches are certain before their conditions are",
            EVERY,
            "threads[total, SURE] = max(threads[total, SURE], threads[a, SURE])",
            "threads[total, SURE] = -1",
        ),
        bug(
            "each absence has to hold",
            DETERMINISTIC,
            "not any(other < absences for other in ends))",
            "not any(other != absences for other in ends))",
        ),
        bug(
            "any state is left by what has come",
            DETERMINISTIC,
            "to is not None and not absences & set(come))",
            "to is not None)",
        ),
        bug(
            "rows that must not come before a match are not kept",
            COMPILED,
            "if not self.leading:",
            "if True:",
        ),
        bug(
            "rows before those that must not come are not kept",
            OPERATOR,
            "first = max(first - self.back, 0)",
            "first = max(min(first, standing.begin - self.back), 0)",
        ),
        bug(
            "every first row that is kept is the first of its partition",
            COMPILED,
            "if self.calls.numbered or self.calls.anchored:",
            "if self.calls.numbered:",
        ),
        bug(
            "a row that must not come may be told by what comes later",
            TABLES,
            "elif compiled.programs and _reads_open(prepared, where, absence):",
            "elif False:",
        ),
        bug(
            "rows are kept while a match is searched for",
            EVERY,
            "if threads[a, DEATH] > until:\n                open_ += 1",
            "if threads[a, DEATH] > NEVER:\n                open_ += 1",
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
        bug(
            "an open search goes on behind its threads' rows as if they were the last",
            OPEN,
            "offsets[p + 1], first_new[p], size, time",
            "offsets[p + 1], max(first_new[p], offsets[p + 1] - 1), size, time",
        ),
        bug(
            "an open search is never due",
            OPEN,
            "waits[p], look[p], noted = open_, over",
            "waits[p], look[p], noted = open_, 1 << 62",
        ),
        bug(
            "of the threads of an open search the first goes on",
            "runtime/kernels/sequences/threads.py",
            "threads[first + k, r]",
            "threads[first, r]",
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
            "rows that go are counted no more",
            KEPT,
            "self.first[partitions], self.begin[partitions] = begun.first, begun.begin",
            "self.begin[partitions] = begun.begin",
        ),
        bug(
            "rows of searches that are open never go",
            KEPT,
            "self.rows.drop(partitions, begun.first - first)",
            "begun = replace(begun, first=first)",
        ),
        bug(
            "rows are added again in the places of those that have gone",
            KEPT,
            "has_rows = begun is not None and self._has_rows(added, begun.first)",
            "has_rows = False",
        ),
        bug(
            "what was written stays though it has gone",
            OPERATOR,
            "state.put(search.again(stored, none, reached))",
            "state.put(replace(stored, look=search.again(stored, none, reached).look))",
        ),
        bug(
            "nodes keep the places of the table",
            COMPILED,
            "np.repeat(rows.offsets[:-1] + first, nodes.count)",
            "np.repeat(0 * first, nodes.count)",
        ),
        bug(
            "a match that goes on is as long as its new rows",
            EVERY,
            "depth += known_nodes[at + last, DEPTH] if last < old",
            "depth += 0 if last < old",
        ),
        bug(
            "a search goes on without the match that it has had",
            OPEN,
            "has_match, look[p] = 1 if matched or its != NONE else 0",
            "has_match, look[p] = 1 if its != NONE else 0",
        ),
        bug(
            "searches that stay open have no results",
            GOES_ON,
            "pl.concat(results) if results else None",
            "None",
        ),
        bug(
            "what must not come before a match is asked of new rows alone",
            FOUND,
            "not (asked or node.per_start is not None)",
            "not node.per_start is not None",
        ),
        bug("nodes stay where there is no room", NODES, "count = stay[outgrown]", "count = 0 * stay[outgrown]"),
        bug("packed nodes lose their numbers", NODES, "first - self.first, first + count", "first, first + count"),
        bug("nodes are never packed", NODES, "self._used > 3 * self.height + LOOSE", "False"),
        bug(
            "packed nodes have the room of before",
            NODES,
            "self.at, self._room_first, self._room_end = at, first, room_end",
            "self.at, self._room_first = at, first",
        ),
        bug(
            "what goes on tells matches of partitions that are decided",
            GOES_ON,
            "chosen = of_partitions(found, left.waits > 0)",
            "chosen = found",
        ),
        bug(
            "searches from each row tell matches of partitions that are decided",
            GOES_ON,
            "matches.append((rows, of_partitions(found, left.waits > 0)))",
            "matches.append((rows, found))",
        ),
        bug(
            "rows that go leave no room",
            ARRAYS,
            "room = self._room[partitions] - count",
            "room = self._room[partitions]",
        ),
        bug(
            "rows before the new ones are not read",
            GOES_ON,
            "np.concatenate([named.ravel(), height - 1])",
            "np.concatenate([named.ravel(), np.full(len(height), -1)])",
        ),
        bug(
            "threads keep the places of the table",
            GOES_ON,
            "left[:, self.calls.named] = np.where(self._named(left) < 0, -1, place[self._named(left)])",
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
            "rows that are added replace those before",
            DESCRIBED,
            "~lasting if self.adds is None else ~lasting & ~self.adds",
            "~lasting",
        ),
        bug("rows stay where there is no room", ARRAYS, "            column.move(at, to)\n", ""),
        bug(
            "a search that a limit ended has failed",
            SEARCH,
            "by_rows = by_rows and row == end and closed and latest == EVER",
            "by_rows = by_rows",
        ),
        bug(
            "what the end of the input leaves is searched from each row",
            SEARCH,
            "by_rows = by_rows and row == end and closed and latest == EVER",
            "by_rows = False",
        ),
        bug(
            "a search fails if its last way has",
            SEARCH,
            "fails = fails and its & memory[row, FAILED] != 0",
            "fails = its & memory[row, FAILED] != 0",
        ),
        bug(
            "rows behind others end a way for all",
            SEARCH,
            "if by_rows and threads[a, GONE] == NOWHERE:",
            "if by_rows:",
        ),
        bug(
            "a search that has found a match has failed",
            SEARCH,
            "by_rows = by_rows and kept == 0 and best == NONE",
            "by_rows = by_rows and kept == 0",
        ),
        bug(
            "what has failed is forgotten",
            SEARCH,
            "told = options[TOLD] if until_then == NO_LOOK else 0",
            "told = 0",
        ),
        bug(
            "any row of a match is told by its last one", TOLD, "kind == LAST_ROWS and count == 1 and", "count == 1 and"
        ),
        bug(
            "rows before the last one are told by it",
            TOLD,
            "kind == LAST_ROWS and count == 1 and",
            "kind == LAST_ROWS and",
        ),
        bug("rows of other variables are told", TOLD, "count == 1 and mask >> variable & 1", "count == 1"),
        bug(
            "limits between any rows are those of a match",
            TOLD,
            "if any((limit.later, limit.earlier) != whole for limit in node.limits):",
            "if any(limit.most < 0 for limit in node.limits):",
        ),
        bug("a mask has room for all states", TOLD, " or len(variables) > MOST_STATES or arrays.tables.demands:", ":"),
        bug(
            "a beginning is over a tick early",
            LISTED,
            "if its_start < since:",
            "if its_start <= since:",
        ),
        bug(
            "of beginnings the last one counts",
            LISTED,
            "entries[here, START] = max(entries[here, START], its_start)",
            "entries[here, START] = its_start",
        ),
        bug(
            "a match may be longer than its limit",
            LISTED,
            "if start_of(entry, at, gone, old, known, entries) < since:",
            "if start_of(entry, at, gone, old, known, entries) == NEVER:",
        ),
        bug(
            "a walk takes the last entry of a state alone",
            LISTED,
            "way[depth, CANDIDATE] = value_of(entry, BEFORE, at, old, known, entries)",
            "way[depth, CANDIDATE] = NOTHING",
        ),
        bug("matches are listed again", LISTED, "if time[row] <= after:", "if time[row] < after:"),
        bug(
            "rows are kept that nothing goes on with",
            LISTED,
            "goes_on = parts[part, FIRST_COMPLETION] < parts[part, LAST_COMPLETION]",
            "goes_on = parts[part, FIRST_COMPLETION] <= parts[part, LAST_COMPLETION]",
        ),
        bug(
            "a row that may go on is not kept",
            LISTED,
            "if over > until:",
            "if over > until + 1:",
        ),
        bug("texts are told apart by no order", ROWS, ".unique().sort()", ".unique(maintain_order=True)"),
        bug("each column of texts has numbers of its own", ROWS, "start += len(column)", "start += 0"),
        bug("the least value is the greatest", MACHINE, "in (LEAST_INT, LEAST_DOUBLE):", "in (LEAST_DOUBLE,):"),
        bug(
            "NULL is a value of an aggregate",
            MACHINE,
            "elif marks[column, row] == VALUE:",
            "elif marks[column, row] < 3:",
        ),
        bug("a total has one word", MACHINE, "+= (value >> LOW_BITS) + (low >> LOW_BITS)", "+= value >> LOW_BITS"),
        bug("a total is what fits of it", MACHINE, "if word < -_HIGH or word >= _HIGH:", "if word < -_HIGH:"),
        bug("a total of decimals has any number of digits", MACHINE, "if abs(stack[top]) > ints[second]:", "if False:"),
        bug("a sum of doubles loses what it rounds", MACHINE, "(more - other) + double_stack[1]", "(more - other)"),
        bug("no value has the mean 0", MACHINE, "mark[top] = NULL if count == 0 else VALUE", "mark[top] = VALUE"),
        bug("a mean is a sum", MACHINE, "if operation == _MEAN_OF_DOUBLES and count > 0:", "if False:"),
        bug(
            "a quotient by 0 has a value",
            MACHINE,
            "if double_stack[top + 1] == 0.0:",
            "if double_stack[top + 1] == -1.0e-300:",
        ),
        bug(
            "decimals are divided unscaled",
            PROGRAMS,
            "self.conditions.constant(float(factor))",
            "self.conditions.constant(1.0)",
        ),
        bug("a mean of decimals is unscaled", PROGRAMS, "float(10**typed.type.scale)", "1.0"),
        bug(
            "a bound is known behind other rows of its variable",
            COMPLETIONS,
            "asked[number] &= variable not in demand.last",
            "asked[number] &= variable not in ()",
        ),
        bug(
            "no bound is known before another row of any variable",
            COMPLETIONS,
            "asked[number] &= variable not in demand.last",
            "asked[number] = False",
        ),
        bug(
            "a first row to come is one that is there",
            COMPLETIONS,
            "bare[number] &= variable not in demand.first",
            "bare[number] &= variable not in ()",
        ),
        bug(
            "a row has no first row of its own variable",
            COMPLETIONS,
            "= True, variable not in demand.first",
            "= True, True",
        ),
        bug(
            "a bound is over a tick early",
            THREADS,
            "time[place] + demands[k, AT_MOST])",
            "time[place] + demands[k, AT_MOST] - 1)",
        ),
        bug(
            "a row that is not there bounds nothing",
            THREADS,
            "            if place < 0:\n                its = NEVER\n",
            "            if place < 0:\n                continue\n",
        ),
        bug("what has failed may still come", THREADS, "if (failing >> k) & 1:", "if (failing >> k) & 2:"),
        bug(
            "a first row that is there is not known",
            THREADS,
            "if not (completions[c, IS_ASKED] >> k) & 1 or not (begun or",
            "if not (completions[c, IS_ASKED] >> k) & 1 or not (False or",
        ),
        bug(
            "threads that are over by a condition go on",
            SEARCH,
            "len(limits) or len(demands) or kept",
            "len(limits) or kept",
        ),
        bug("a strict bound of instants is one tick more", DEMANDS, "most = bound.most\n", "most = bound.most + 1\n"),
        bug(
            "a least distance adds up to nothing",
            DEMANDS,
            "if least and (prepared.node.limits or",
            "if False and (prepared.node.limits or",
        ),
        bug(
            "a choice asks for one of its sides",
            DEMANDS,
            "if not known or _may_hold(prepared, part, known):",
            "if not known:",
        ),
        bug(
            "a choice that has no value may be true",
            DEMANDS,
            '(True, False, None, "none") if resolve(atom, schema).fallible else (True, False, None)',
            "(True, False, None)",
        ),
        bug(
            "threads that conditions end have failed for all",
            TOLD,
            " or arrays.tables.demands:",
            ":",
        ),
        bug(
            "beginnings are alike whatever conditions read",
            LISTABLE,
            "if any(one.programs or one.waits for",
            "if any(one.waits for",
        ),
        bug(
            "a limit between any rows is one of the match",
            LISTABLE,
            "if any((limit.later, limit.earlier) != whole or limit.most < 0 for limit in node.limits):",
            "if any(limit.most < 0 for limit in node.limits):",
        ),
    ),
)
