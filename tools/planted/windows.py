"""Slips in windows that depend on rows or overlap."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SESSIONS = "runtime/ordered/windows/sessions.py"
PANES = "runtime/ordered/windows/panes.py"
PARTIAL = "runtime/ordered/windows/partial_panes.py"
HOPPING = "runtime/ordered/windows/hopping.py"
PHASES = "runtime/ordered/windows/phases.py"
LIFTING = "runtime/ordered/windows/lifting.py"
LAYOUT = "runtime/ordered/windows/layout.py"
QUEUES = "runtime/ordered/windows/queues.py"
PAIRS = "runtime/eval/aggregates/pairs.py"
ORDER_KEYS = "runtime/eval/aggregates/order_keys.py"
RUNNING = "runtime/kernels/partitions/running.py"
COMPILED = "runtime/eval/aggregates/compiled.py"
PLACES = "runtime/kernels/asof/places.py"
BLOCKS = "runtime/kernels/partitions/panes.py"
CALENDAR = "algebra/ordered/windows/calendar.py"
CUTS = "runtime/ordered/windows/rows/cuts.py"
ROWS = "runtime/ordered/windows/rows/operator.py"
KEPT = "runtime/ordered/windows/rows/store.py"
TABLES = "runtime/ordered/state_tables.py"
NODE = "algebra/ordered/windows/node.py"
ZONES = "analysis/ordered/windows.py"
OPENED = "algebra/dsl/windows/opened.py"
BUILD = "algebra/dsl/windows/build.py"

GROUP = Group(
    "windows of rows",
    (
        "tests/runtime/test_windows.py",
        "tests/runtime/test_pane_phases.py",
        "tests/runtime/test_pane_queues.py",
        "tests/runtime/kernels/test_grouping.py",
        "tests/runtime/kernels/test_panes.py",
        "tests/runtime/test_window_kinds.py",
        "tests/runtime/test_whole_windows.py",
        "tests/runtime/test_windows_between.py",
        "tests/runtime/test_state_deltas.py",
        "tests/runtime/test_state_slices.py",
        "tests/properties/test_operators.py",
    ),
    (
        bug(
            "a row at the end of a session begins another",
            SESSIONS,
            "last[:-1] > self.gap\n",
            "last[:-1] >= self.gap\n",
        ),
        bug(
            "sessions of two keys are one",
            SESSIONS,
            "(np.diff(of) != 0) | self._begins(",
            "self._begins(",
        ),
        bug(
            "a session ends with its first rows",
            SESSIONS,
            "last[ends[: len(starts)]]",
            "last[starts]",
        ),
        bug(
            "sessions are looked at when rows come only",
            SESSIONS,
            "        look[sessions.get_column(PARTITION).to_numpy()] = self.ends(sessions)\n",
            "",
        ),
        bug(
            "partial results know no tie of first and last values",
            LAYOUT,
            "replace(aggregate, by=Attr(PLACE)) if",
            "aggregate if",
        ),
        bug(
            "rows in windows know no tie of first and last values",
            ROWS,
            "by_place = self.node.goes_by_order(aggregate)",
            "by_place = False",
        ),
        bug(
            "what goes by the tie in windows is named as what does not",
            NODE,
            "{aggregate_text(aggregate, self.tie if self.goes_by_order(aggregate) else None)}",
            "{aggregate_text(aggregate)}",
        ),
        bug(
            "a window is computed again",
            BLOCKS,
            "begin[i] = max(pane[i], low[p] + 1, least)",
            "begin[i] = max(pane[i], least)",
        ),
        bug(
            "a window has the block before its own twice",
            BLOCKS,
            "i if w <= end[i] else -1",
            "i",
        ),
        bug(
            "panes of a block are numbered through",
            BLOCKS,
            "if some[i] and some[i + 1] and of[i] == of[i + 1] and block[i] == block[i + 1]:",
            "if some[i] and some[i + 1] and of[i] == of[i + 1]:",
        ),
        bug(
            "a pane goes with its own end",
            PARTIAL,
            "kept: BoolArray = self.panes.last(_pane(rows)) > high[of]",
            "kept: BoolArray = _pane(rows) > high[of]",
        ),
        bug(
            "a row at an end is in the next window",
            PANES,
            "        return np.negative(before, out=before)",
            "        return (time - self.offset) // self.every + 1",
        ),
        bug(
            "windows that grow begin at their own end",
            PANES,
            "return (self.block(window) - 1) * self.many if",
            "return window // self.many * self.many if",
        ),
        bug(
            "windows are looked at when rows come only",
            PARTIAL,
            "            look[of] = axis.end(high[of] + 1, of)\n",
            "",
        ),
        bug(
            "windows are looked at anew after a start when rows come only",
            HOPPING,
            "PaneExtract(partitions, rows, latest, panes.looks(latest, high, none.axis)))",
            "PaneExtract(partitions, rows, latest, np.full_like(high, (1 << 63) - 1)))",
        ),
        bug(
            "after a start a block goes on without what it came to",
            HOPPING,
            "latest = panes.latest(panes.totals(rows.clear(), rows, phase), high)",
            "latest = panes.latest(rows, high)",
        ),
        bug(
            "what a block comes to goes on in the next one",
            PARTIAL,
            "places(_of(new), block))",
            "places(_of(new), 0 * block))",
        ),
        bug(
            "a window has what is before it in its block",
            PARTIAL,
            "        place[ahead & (block[place] != self.block(window, of, phase) - 1)] = -1\n",
            "",
        ),
        bug(
            "a window begins with the pane that it is without",
            PARTIAL,
            "self.panes.before(window), True)",
            "self.panes.before(window), False)",
        ),
        bug(
            "panes of a block that has ended stay alone",
            HOPPING,
            "        rows = panes.remainders(rows, ended, phase)\n",
            "",
        ),
        bug(
            "panes are merged again where a block has ended before",
            HOPPING,
            "ended = (block >= before[place]) & (block",
            "ended = (block",
        ),
        bug(
            "blocks of all partitions end at once",
            PHASES,
            "return (found % np.uint64(many)).astype(np.int64)",
            "return np.zeros(keys.height, dtype=np.int64)",
        ),
        bug(
            "a window has its first pane in a block of another partition",
            PARTIAL,
            "self.block(window, of, phase) - 1)",
            "self.block(window, of, 0 * phase) - 1)",
        ),
        bug(
            "a text begins with the bytes of the one before",
            PHASES,
            "np.repeat(ends[:-1] - first, lengths)",
            "np.repeat(ends[:-1], lengths) * 0",
        ),
        bug(
            "a pane that goes on is there twice",
            HOPPING,
            "count - gone - goes_on)",
            "count - gone)",
        ),
        bug(
            "a pane that goes on forgets its first rows",
            PARTIAL,
            "merged = merged_pairs(self.group, some_of(new, at), some_of(known, its))",
            "merged = some_of(new, at)",
        ),
        bug(
            "rows that stay are those at the front",
            QUEUES,
            "self._first[partitions] + gone",
            "self._first[partitions] + 0 * gone",
        ),
        bug(
            "rows are gone though there is no memory for those that come",
            QUEUES,
            "        at = ranges(first + kept, added)\n",
            "        self._first[partitions], self._count[partitions] = first, count\n"
            "        at = ranges(first + kept, added)\n",
        ),
        bug(
            "a partition that moves leaves rows behind",
            QUEUES,
            "                column.move(at, to)\n",
            "",
        ),
        bug(
            "rows move back to where the room of another begins",
            QUEUES,
            "            before[outgrown] = 0\n",
            "",
        ),
        bug(
            "rows that are packed have as many places before them as ever",
            QUEUES,
            "            self._gone[:] = 0\n",
            "            pass\n",
        ),
        bug(
            "of rows with equal keys the first stays",
            COMPILED,
            "last[numbers] = np.arange(rows.height)",
            "last[numbers[::-1]] = np.arange(rows.height)[::-1]",
        ),
        bug(
            "an instant is searched for behind the one before",
            PLACES,
            "high = low + step - 1",
            "high = low + step - 2",
        ),
        bug(
            "sums of doubles forget what they lost",
            PAIRS,
            "(y - part) + (lost_x + lost_y)",
            "(y - part)",
        ),
        bug(
            "the last of equal orders is any",
            PAIRS,
            'sooner | ((own["by"] == other["by"]) & (own["v"] <= other["v"]))',
            "sooner",
        ),
        bug("a window ends with every pane", PANES, "(panes - self.first) % self.step == 0", "panes == panes"),
        bug(
            "windows of rows end at multiples wherever they begin",
            PANES,
            ", first=offset // pane)",
            ")",
        ),
        bug(
            "windows from a first row on end at multiples",
            PANES,
            "step=every // pane, first=many)",
            "step=every // pane)",
        ),
        bug(
            "panes of two keys are one group",
            "runtime/kernels/grouping.py",
            "cells[row] = cells[row] * width + number",
            "cells[row] = cells[row] + number",
        ),
        bug(
            "panes are in order of their keys alone",
            LIFTING,
            "return rows[by_partition(of, by_pane, int(of.max()) + 1)]",
            "return rows[by_partition(of, np.arange(len(pane)), int(of.max()) + 1)]",
        ),
        bug(
            "running sums of doubles forget what they lost",
            RUNNING,
            "(also_high - other) + (low + also_low)",
            "(also_high - other)",
        ),
        bug("what is best so far is the last one", RUNNING, "if there[i] and (best < 0 or", "if there[i] and (True or"),
        bug(
            "a block goes on where another one begins",
            RUNNING,
            "if place[i] == 0:\n            best = -1",
            "if False:\n            best = -1",
        ),
        bug(
            "the greatest value so far is the least",
            PAIRS,
            "first = ~keys[0] if state.form in",
            "first = keys[0] if state.form in",
        ),
        bug(
            "doubles that are negative are ordered by their bits",
            ORDER_KEYS,
            "np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)",
            "bits",
        ),
        bug(
            "every other row of a block has nothing before it",
            PAIRS,
            "later = np.flatnonzero((place & 1 == 0) & (place > 0))",
            "later = np.flatnonzero((place & 1 == 0) & (place > 2))",
        ),
        bug(
            "a window without rows is complete at its end",
            PARTIAL,
            "complete = np.concatenate([end[: len(end) - len(told)], told])",
            "complete = end",
        ),
        bug(
            "windows without rows begin after the last pane",
            PARTIAL,
            "first, last = self.panes.last(pane[follows]) + 1,",
            "first, last = pane[follows] + 1,",
        ),
        bug(
            "windows before a far row are listed however many they are",
            PARTIAL,
            "(many := int((last - first).max()) + 1) > MOST_OF_A_ROW or",
            "(many := int((last - first).max()) + 1) > MOST_OF_A_ROW << 40 or",
        ),
        bug("windows before many far rows are listed however many they are", PARTIAL, " or in_all > MOST_IN_ALL", ""),
        bug(
            "another row than the far one is named",
            PARTIAL,
            "row = int(follows[np.argmax(last - first)]) + 1",
            "row = int(follows[np.argmin(last - first)]) + 1",
        ),
        bug(
            "no rows have no count",
            PARTIAL,
            "        elif self.shows_empty:\n            made = merged",
            "        elif False:\n            made = merged",
        ),
        bug(
            "a key without an open window is forgotten",
            PARTIAL,
            "if self.panes.stays else kept",
            "if False else kept",
        ),
        bug(
            "the last pane of a key leaves the queue",
            HOPPING,
            "        if of.stays:",
            "        if False:",
        ),
        bug(
            "windows that are not whole are reported",
            PARTIAL,
            "least = panes.many if panes.whole else -ENDLESS",
            "least = -ENDLESS",
        ),
        bug(
            "rows are counted anew in each increment",
            LIFTING,
            "number[order] = self.before[in_partition] + places(",
            "number[order] = places(",
        ),
        bug(
            "rows are counted in the order in which they come",
            LIFTING,
            "order = order_of(reading, self.rows)\n",
            "order = np.arange(self.rows.height)\n",
        ),
        bug(
            "rows of one instant are counted in any order",
            LIFTING,
            "order = require_order(reading, self.rows, self.of, order, self.partitions)",
            "order = by_partition(self.of, order, self.partitions)",
        ),
        bug(
            "rows before the first instant are in its windows",
            LIFTING,
            "inside = pane > 0",
            "inside = pane > -(1 << 62)",
        ),
        bug(
            "units of the calendar are looked up however far apart",
            PANES,
            "    if high - low <= year:\n",
            "    if True:\n",
        ),
        bug(
            "an instant after a year without any is in the units before",
            PANES,
            "np.flatnonzero(np.diff(instants) > year) + 1)",
            "np.flatnonzero(np.diff(instants) > year))",
        ),
        bug(
            "windows from an instant on are reported for ever",
            PANES,
            "        if self.many == ENDLESS:\n            return 0\n",
            "        if self.many == ENDLESS:\n            return 3\n",
        ),
        bug(
            "windows are aligned at the first row of an increment",
            LIFTING,
            "fresh = since[self.of] == _NONE",
            "fresh = np.ones(len(self.of), dtype=np.bool_)",
        ),
        bug(
            "the first window begins after the first row",
            LIFTING,
            "since = np.where(first < -_NONE, first - 1, since)",
            "since = np.where(first < -_NONE, first, since)",
        ),
        bug("rows at a gap begin a session", CUTS, "np.diff(time) > gap", "np.diff(time) >= gap"),
        bug(
            "rows of a session are those of every key", CUTS, "begins = starts_of(of)\n", "begins = starts_of(0 * of)\n"
        ),
        bug("a session of rows is over a tick early", CUTS, "[first], end <= until", "[first], end <= until + 1"),
        bug(
            "a window of kept rows ends with the row that opens it",
            CUTS,
            "np.minimum.reduceat(closed, first) if",
            "closed[first] if",
        ),
        bug(
            "sessions of rows are looked at when rows come only",
            CUTS,
            "    look[of[~over]] = end[~over]\n",
            "",
        ),
        bug(
            "rows are numbered anew in each increment",
            CUTS,
            "block.first[of] + before[of] + 1",
            "block.first[of] + 1",
        ),
        bug(
            "windows of rows that are not whole have rows of others",
            CUTS,
            "panes.between(np.maximum(low + 1, many), high)",
            "panes.between(low + 1, high)",
        ),
        bug(
            "a window of rows ends with every pane",
            PARTIAL,
            "return at[its], pane[its]",
            "return at, pane",
        ),
        bug(
            "a window has the row at its start",
            CUTS,
            "(first_from(block.offsets, block.time, its, bounds[name], True) for",
            "(first_from(block.offsets, block.time, its, bounds[name], name == END) for",
        ),
        bug(
            "rows go with their own pane",
            CUTS,
            "    kept = panes.is_open(rows, high)\n    look",
            "    kept = rows.get_column(PANE).to_numpy() > high[of]\n    look",
        ),
        bug(
            "windows of kept rows are looked at when rows come only",
            CUTS,
            "look = panes.looks(rows.filter(pl.Series(kept)), high, axis)",
            "look = panes.looks(rows.clear(), high, axis)",
        ),
        bug(
            "a row in no window is beside windows without rows",
            LIFTING,
            "elif self.layout.panes.have_gaps:\n            inside = self.layout.panes.are_in_windows(pane)\n        else",
            "else",
        ),
        bug(
            "a kept row in no window is beside windows without rows",
            ROWS,
            "rows, of, len(partitions)).inside\n",
            "rows, of, len(partitions))\n",
        ),
        bug(
            "the pane before a window is in it",
            PANES,
            "(self.first - panes) % self.step < self.many\n",
            "(self.first - panes) % self.step <= self.many\n",
        ),
        bug(
            "windows are in any order, so frames go back",
            CUTS,
            "found = found.sort(PARTITION, END)",
            "found = found.sort(PARTITION, START, descending=[False, True])",
        ),
        bug(
            "windows of kept rows are looked at anew after a start when rows come only",
            ROWS,
            "state.put(WindowExtract(partitions, rows, look))",
            "state.put(WindowExtract(partitions, rows, np.full_like(look, (1 << 63) - 1)))",
        ),
        bug(
            "rows come behind those of a window that ends",
            CUTS,
            "    on = is_known & (look > until) & (look < NO_LOOK)\n",
            "    on = is_known & (look < NO_LOOK)\n",
        ),
        bug(
            "rows come behind one that no later window has",
            CUTS,
            "    on = is_known & (look > until) & (look < NO_LOOK)\n",
            "    on = is_known & (look > until)\n",
        ),
        bug(
            "rows come behind those of a window that a row closes",
            CUTS,
            "came.of[closes], minlength=len(look)) == 0",
            "came.of[closes], minlength=len(look)) >= 0",
        ),
        bug(
            "rows come behind those of a window that has as many as it may",
            CUTS,
            "(now // window.pane == came.before // window.pane)",
            "(now // window.pane >= came.before // window.pane)",
        ),
        bug(
            "the last row of a window that is complete stays with the next",
            CUTS,
            "last_is_open = (came.before % window.pane > 0) | (panes_alone(node).panes.many > 1)",
            "last_is_open = True",
        ),
        bug(
            "an increment reads all rows that are kept",
            ROWS,
            "before = state.some(partitions, ~added_to)",
            "added_to = np.zeros_like(added_to)\n        before = state.some(partitions, ~added_to)",
        ),
        bug(
            "a row that stays goes with those of its instant",
            ROWS,
            "parted = some[(kept[some] > 0)",
            "parted = some[(kept[some] < 0)",
        ),
        bug(
            "what is gone of a window is not written",
            ROWS,
            "self.held.marked(pl.concat([known, rows]), marks)",
            "self.held.marked(pl.concat([known, rows]), marks.clear())",
        ),
        bug(
            "a slice leaves what was written before it",
            KEPT,
            "stored=self.marked(extract.rows, marks)",
            "stored=self.marked(extract.rows, marks.clear())",
        ),
        bug(
            "what is gone takes what is written with it",
            TABLES,
            "(part.filter(is_mark), part.filter(~is_mark))",
            "(part.filter(~is_mark), part.filter(is_mark))",
        ),
        bug(
            "of several parts the last one says what is gone",
            TABLES,
            "pl.col(gone).cum_max(reverse=True).backward_fill()",
            "pl.col(gone).backward_fill()",
        ),
        bug("what is tied is counted in any order", ROWS, "if isinstance(self.node.window, CountWindow):", "if False:"),
        bug(
            "a sum of kept rows that does not fit is NULL in silence",
            ROWS,
            "for place in np.flatnonzero(~fits)]",
            "for place in np.flatnonzero(~fits)][:0]",
        ),
        bug(
            "windows since an instant keep every row",
            NODE,
            "if isinstance(self.window, LandmarkWindow):",
            "if False:",
        ),
        bug(
            "a day without midnight begins by the clock before its change",
            CALENDAR,
            "if to_local(begins, zone) == midnight:",
            "if begins:",
        ),
        bug(
            "weeks begin on Sunday",
            CALENDAR,
            "_MONDAY: Final = -3",
            "_MONDAY: Final = -4",
        ),
        bug(
            "a unit of the calendar begins late where clocks are ahead",
            CALENDAR,
            "    while beginning(unit, zone, number - 1) >= instant:\n        number -= 1\n",
            "",
        ),
        bug(
            "days have no more than 24 hours",
            ZONES,
            "return size * LONGEST_DAYS[unit] * DAY + 2 * DAY",
            "return size * LONGEST_DAYS[unit] * DAY",
        ),
        bug(
            "a window without rows is known at its end",
            ZONES,
            'return (Compare(end, "<=", complete), ',
            'return (Compare(end, "=", complete), ',
        ),
        bug(
            "a session begins no longer ago than its gap",
            ZONES,
            'return And((Compare(start, "<=", row), Compare(end, "=", Shift(row, gap)), equal))',
            'return And((Compare(start, "=", row), Compare(end, "=", Shift(row, gap)), equal))',
        ),
        bug(
            "a row opens another window while one is open",
            OPENED,
            'Transition("initiate", _OPEN, (_CLOSED, _OPEN))',
            'Transition("switch", _OPEN, (_CLOSED, _OPEN))',
        ),
        bug(
            "no window starts where the one before ends",
            OPENED,
            'Transition("initiate", _OPEN, (_CLOSED, _OPEN))',
            'Transition("initiate", _OPEN, (_CLOSED,))',
        ),
        bug(
            "a limit ends what was opened before its row",
            OPENED,
            'since = call("add", at, Lit(1, distance))',
            "since = at",
        ),
        bug(
            "a limit ends what was opened after its row",
            OPENED,
            'since = call("add", at, Lit(1, distance))',
            'since = call("add", at, Lit(longest, distance))',
        ),
        bug(
            "a key that is NULL opens windows",
            OPENED,
            "if there else self.rows._node",
            "if False else self.rows._node",
        ),
        bug(
            "windows without rows are there in any case",
            OPENED,
            'call("gt", Attr(marks.rows), Lit(0, BIGINT))',
            'call("ge", Attr(marks.rows), Lit(0, BIGINT))',
        ),
        bug(
            "what closes a window counts as a row",
            OPENED,
            "ends = Imbed(ends, name, Lit(None, rows.schema[name].type))",
            "ends = Imbed(ends, name, TRUE if name == marks.row else Lit(None, rows.schema[name].type))",
        ),
        bug(
            "attributes of windows have names of users",
            OPENED,
            '        mark = unused_mark(names)\n        return cls(f"{mark}opened"',
            '        mark = "~"\n        return cls(f"{mark}opened"',
        ),
        bug(
            "attributes of what asks for a change have names of users",
            OPENED,
            '        mark = unused_mark(names)\n        return cls(f"{mark}number"',
            '        mark = "~"\n        return cls(f"{mark}number"',
        ),
        bug(
            "the next window is the one that has ended",
            SESSIONS,
            "begins: BoolArray = first[1:] != first[:-1]",
            "begins: BoolArray = first[1:] < first[:-1]",
        ),
        bug(
            "rows that do not close a window keep it open",
            SESSIONS,
            "np.minimum.reduceat(last, starts)",
            "np.maximum.reduceat(last, starts)",
        ),
        bug(
            "the last row of a session has any keys",
            ZONES,
            "Shift(row, gap)), equal))",
            "Shift(row, gap))))",
        ),
        bug(
            "a row may be in one window less",
            BUILD,
            "if window.size > MOST_WINDOWS * window.every:",
            "if window.size >= MOST_WINDOWS * window.every:",
        ),
        bug(
            "the first of a month belongs to the month before, as midnight does",
            CALENDAR,
            "return _first_day(unit, number) - 1",
            "return _first_day(unit, number)",
        ),
        bug(
            "dates are parted where a year of microseconds is between them",
            PANES,
            "year = _YEAR if self.zone is None else _YEAR * DAY",
            "year = _YEAR * DAY",
        ),
        bug(
            "what there was up to each row is of a range of a tick more than windows are",
            BUILD,
            "range={_duration(window.size - 1, type_)}",
            "range={_duration(window.size, type_)}",
        ),
        bug(
            "what there was up to each row forgets the keys of windows",
            BUILD,
            "keys = (*keys, name)",
            "keys = (name,)",
        ),
    ),
)
