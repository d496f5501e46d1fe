"""Slips in what gives rows values of the rows around them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PARTITIONS = "runtime/kernels/partitions/rows.py"
SEGMENTS = "runtime/kernels/over/segments.py"
RUNNING = "runtime/kernels/over/running.py"
MOVING = "runtime/kernels/over/moving.py"
ARRAYS = "runtime/ordered/row_arrays.py"
BLOCK = "runtime/ordered/over/block.py"
ORDER_KEYS = "runtime/eval/aggregates/order_keys.py"
VALUES = "runtime/ordered/over/values.py"
FRAMES = "runtime/ordered/over/frames.py"
WHOLE = "runtime/ordered/over/whole.py"
OPERATOR = "runtime/ordered/over/operator.py"
LAYOUT = "runtime/ordered/over/layout.py"
LAST = "runtime/ordered/over/last_rows.py"
STORE = "runtime/ordered/partition_store.py"
HELD = "runtime/ordered/row_operator.py"
EVENTS = "runtime/ordered/new_events.py"
ZONES = "analysis/ordered/over.py"
MEANING = "algebra/ordered/over.py"
LITERALS = "algebra/dsl/literals.py"
CHAINS = "algebra/dsl/over/chains.py"
SHARED = "analysis/ordered/over.py"
QUEUED = "runtime/kernels/over/queued.py"
QUEUED_OPERATOR = "runtime/ordered/over/queued/operator.py"
ARRIVAL = "runtime/ordered/over/queued/arrival.py"
QUEUED_LAYOUT = "runtime/ordered/over/queued/layout.py"

GROUP = Group(
    "rows around rows",
    (
        "tests/runtime/kernels/test_over.py",
        "tests/runtime/test_row_arrays.py",
        "tests/runtime/test_over.py",
        "tests/runtime/test_over_last_rows.py",
        "tests/properties/test_operators.py",
    ),
    (
        bug(
            "a frame leaves its first instant out",
            SEGMENTS,
            "time[i] - time[behind] > before",
            "time[i] - time[behind] >= before",
        ),
        bug("of peers those before count alone", SEGMENTS, "if not peers and after == 0:", "if after == 0:"),
        bug(
            "new rows come in the order in which they are given",
            PARTITIONS,
            "for i in order:",
            "for i in range(len(new)):",
        ),
        bug(
            "a limit of a neighbour is a tick short",
            SEGMENTS,
            "abs(time[j] - time[i]) <= within",
            "abs(time[j] - time[i]) < within",
        ),
        bug(
            "a row waits for its limit though the next is there",
            SEGMENTS,
            "not known or time[i] + ticks < instants[i]",
            "True",
        ),
        bug(
            "rows are freed a tick too soon",
            SEGMENTS,
            "time[needed] + ticks[j] <= until",
            "time[needed] + ticks[j] <= until + 1",
        ),
        bug(
            "rows are freed a tick too late",
            SEGMENTS,
            "time[needed] + ticks[j] <= until",
            "time[needed] + ticks[j] < until",
        ),
        bug("what a waiting row looks back at is freed", SEGMENTS, "needed = min(needed, its)", "pass"),
        bug(
            "rows that equal a later one stay for a moving extreme",
            MOVING,
            "best < 0 or key[i] < key[best] or (several",
            "best < 0 or key[i] <= key[best] or (several",
        ),
        bug(
            "a zero of one sign undercuts that of the other",
            MOVING,
            " or (several and key[i] == shared and key[best] == shared)",
            "",
        ),
        bug("rows are undercut that other frames add up", OPERATOR, "or len(best) < len(spans)", ""),
        bug(
            "the last rows are undercut too",
            OPERATOR,
            "    undercut = np.arange(len(left.of)) < offsets[left.of + 1] - last\n",
            "    undercut = np.ones(len(left.of), dtype=np.bool_)\n",
        ),
        bug(
            "what one extreme does not need is gone for the others",
            OPERATOR,
            "        undercut &= values",
            "        undercut = values",
        ),
        bug(
            "rows between are not asked what is chosen of them",
            CHAINS,
            'argument=call("if", condition, argument, nothing)',
            "argument=argument",
        ),
        bug(
            "where a condition stands between, more rows are kept for it",
            CHAINS,
            "if frame.after or not any(_keeps(one, frame.before) for one in below.columns):",
            "if frame.after:",
        ),
        bug(
            "frames by rows count those that are not chosen",
            CHAINS,
            'if not isinstance(column, FrameAggregate) or column.frame.unit == "rows":',
            "if not isinstance(column, FrameAggregate):",
        ),
        bug(
            "a row that is not chosen is one of two at an instant",
            CHAINS,
            " or (asked.needs_order and not below.needs_order))\n",
            ")\n",
        ),
        bug(
            "rows that are equal are two where something reads what is reported of them",
            CHAINS,
            "below.merges_equal or ",
            "",
        ),
        bug(
            "an attribute with the name of a key is one",
            CHAINS,
            "if (tuple(map(names.get, asked.keys)), names",
            "if (asked.keys, names",
        ),
        bug(
            "a copy of the instant orders rows",
            CHAINS,
            "        return None  # by a copy of the instant, which orders no rows\n",
            "        pass\n",
        ),
        bug(
            "a column has a name that an attribute has below",
            CHAINS,
            " if name in there else name)",
            " if False else name)",
        ),
        bug(
            "each call of a chain gives names by itself",
            CHAINS,
            "        if isinstance(self.rows, Rename):\n",
            "        if False:\n",
        ),
        bug(
            "each call of a chain leaves attributes out by itself",
            CHAINS,
            "            case Project():\n                pass\n",
            "            case Project():\n                self.rows = Project(self.rows, self.rows.schema.names)\n",
        ),
        bug(
            "a name that is given twice is the first one",
            CHAINS,
            "(name, new.get(then, then)) for name, then in before",
            "(name, then) for name, then in before",
        ),
        bug(
            "a name is taken of what was left out",
            CHAINS,
            " if name in self.names and name not in new]:",
            " if False]:",
        ),
        bug(
            "a condition that may have no value goes with the rows",
            CHAINS,
            "    terms = [*between.terms, *(term",
            "    terms = [*between.computed.values(), *(term",
        ),
        bug(
            "columns that are named alike are one",
            SHARED,
            "            if with_name(column, name) == other:\n",
            "            if column.name == name:\n",
        ),
        bug(
            "a column reads that of another query with its name",
            SHARED,
            "self._placed(with_terms(column, lambda term: substitute(term, renamed)))",
            "self._placed(column)",
        ),
        bug(
            "a result that is an operator has it to itself",
            "analysis/inner_queries.py",
            " and _core_operator(node) not in self.shared\n",
            "\n",
        ),
        bug(
            "rows without a value are set aside for all queries",
            SHARED,
            " or any(resolve(term, node.known).fallible for term in terms):",
            ":",
        ),
        bug(
            "rows that wait have columns with others",
            SHARED,
            "        if node.waits or node.merges_equal",
            "        if node.merges_equal",
        ),
        bug(
            "peers stand in the order of rows that have none",
            SHARED,
            "        return node.keys, node.time, node.tie, node.needs_order\n",
            "        return node.keys, node.time, node.tie\n",
        ),
        bug(
            "blocks have a row of the block before",
            QUEUED,
            "            size = number & -number\n            s, c = value[i]",
            "            size = 2 * (number & -number)\n            s, c = value[i]",
        ),
        bug(
            "a block that begins before the frame is added",
            QUEUED,
            "                    whole = place - size + 1 >= split\n                    if place < count[p]:\n",
            "                    whole = True\n                    if place < count[p]:\n",
        ),
        bug(
            "a least value is that of a block that begins before the frame",
            QUEUED,
            "                    whole = place - size + 1 >= split\n                    known = ",
            "                    whole = True\n                    known = ",
        ),
        bug("sums have what has left the frame", QUEUED, "k = min(low[i], split) - start\n", "k = 0\n"),
        bug(
            "a least value is none of those that leave",
            QUEUED,
            "            other = left[min(low[i], split) - start]\n",
            "            other = -1\n",
        ),
        bug(
            "sums of frames that have no row in common are of the first one",
            QUEUED,
            "if i == asked[p] or (low[i] >= split and split < last):\n                start, split, reached = low[i], min(last, high[i]), high[i]\n                left, left_lost",
            "if i == asked[p]:\n                start, split, reached = low[i], min(last, high[i]), high[i]\n                left, left_lost",
        ),
        bug(
            "least values of frames that have no row in common are of the first one",
            QUEUED,
            "if i == asked[p] or (low[i] >= split and split < last):\n                start, split, reached = low[i], min(last, high[i]), high[i]\n                left = ",
            "if i == asked[p]:\n                start, split, reached = low[i], min(last, high[i]), high[i]\n                left = ",
        ),
        bug("of equal orders the first row counts", QUEUED, "    if theirs == mine:\n", "    if earlier < 0:\n"),
        bug(
            "of equal least values the last one counts",
            QUEUED,
            "    return earlier if theirs <= mine else at\n",
            "    return earlier if theirs < mine else at\n",
        ),
        bug("a row waits as its last column does", QUEUED, "found[p] = min(found[p], place)", "found[p] = place"),
        bug(
            "a row waits a tick too long",
            QUEUED,
            "many, until - ticks[j])\n            found[p]",
            "many, until - ticks[j] - 1)\n            found[p]",
        ),
        bug(
            "what a row that waits is made of is gone",
            QUEUED,
            "                place = min(place, its)\n",
            "",
        ),
        bug(
            "rows that are kept are complete before others come",
            QUEUED_OPERATOR,
            "Asked.between(come.waited(ticks(after)), waits)",
            "Asked.between(np.minimum(come.count, waits), waits)",
        ),
        bug(
            "a row that is there is waited for until the limit",
            ARRIVAL,
            "np.where(known, np.minimum(instants, own + ticks), own + ticks)",
            "own + ticks",
        ),
        bug(
            "rows of one instant are gone together",
            QUEUED_LAYOUT,
            "return TIME if goes_by_time(self.node) else NUMBER",
            "return TIME",
        ),
        bug("the last of the rows is the first", ARRIVAL, "else -self.number}", "else self.number}"),
        bug(
            "texts are compared by their numbers among new rows",
            "analysis/ordered/over.py",
            "return kinds.isdisjoint((Kind.STRING, Kind.NULL))",
            "return kinds.isdisjoint((Kind.NULL,))",
        ),
        bug(
            "frames of few rows are made of blocks",
            QUEUED_LAYOUT,
            "many is None or many > FEW_ROWS for",
            "many is None or many > 0 for",
        ),
        bug(
            "the last rows of a window that is over stay",
            OPERATOR,
            "None if _lets_go(ordered) else queued_layout(ordered.node)",
            "queued_layout(ordered.node)",
        ),
        bug(
            "rows that are looked up are a tick too far away",
            ARRIVAL,
            "self.times(of, own)) > within\n",
            "self.times(of, own)) > within + 1\n",
        ),
        bug(
            "a row without a value has that of its block",
            QUEUED,
            "other = abs(known) - base[p] if whole else place if known > 0 else -1",
            "other = abs(known) - base[p] if whole else place",
        ),
        bug(
            "peers that come later are in no frame",
            QUEUED,
            "            if peers or after > 0:\n",
            "            if after > 0:\n",
        ),
        bug(
            "numbers of rows begin anew in each batch",
            ARRIVAL,
            "        base[some] = state.rows.numbers(NUMBER)[first[some]]\n",
            "",
        ),
        bug(
            "totals begin anew in each batch",
            ARRIVAL,
            "        last[some] = self.kept(self.layout.part(kept, name))[at] + own\n",
            "",
        ),
        bug(
            "rows leave a tick late",
            QUEUED,
            "many, until - ticks[j])\n            gone = NEVER",
            "many, until - ticks[j] - 1)\n            gone = NEVER",
        ),
        bug("a span is over with its last row", SEGMENTS, "look[p] = expires", "look[p] = NEVER"),
        bug(
            "a running count starts anew in each batch", RUNNING, "n[first[p] - 1] if first[p] > offsets[p] else 0", "0"
        ),
        bug(
            "a running sum starts anew in each batch", RUNNING, "h, lo = high[first[p] - 1], low[first[p] - 1]", "pass"
        ),
        bug("halves of a sum are not carried", RUNNING, "                h += lo >> 32\n", ""),
        bug(
            "what a sum of doubles loses is lost",
            RUNNING,
            "        lost += (value - new_total) + total\n",
            "        pass\n",
        ),
        bug(
            "a least value starts anew in each batch",
            RUNNING,
            "if valid[i] and (best < 0 or key[i] < key[best]):",
            "if valid[i] and (best < 0 or best >= n or key[i] < key[best]):",
        ),
        bug("the last value is the first", RUNNING, "if valid[i] and (best < 0 or last):", "if valid[i] and best < 0:"),
        bug(
            "NULL differs from nothing",
            RUNNING,
            "valid[i] != valid[i - 1] or (valid[i] and",
            "(valid[i] and valid[i - 1] and",
        ),
        bug("the queue keeps what has left the frame", MOVING, "queue[head] < start", "queue[head] < start - 1"),
        bug(
            "a moving sum forgets what is before the middle",
            MOVING,
            "added(ahead[start], ahead_lost[start] + total_lost, total)",
            "added(0.0, total_lost, total)",
        ),
        bug(
            "of several new rows of a partition each is the first",
            STORE,
            "return part.astype(np.int64) if (self._place[part] == number).all() else None",
            "return part.astype(np.int64)",
        ),
        bug("a limit of a neighbour is none", LAST, "        if column.within is None:\n", "        if True:\n"),
        bug("a limit of a neighbour is a tick short in last rows", LAST, "<= column.within", "< column.within"),
        bug("a last row that is needed for a while stays", LAST, "    return lasts and not", "    return not"),
        bug(
            "rows that are needed for a while are others than those that stay",
            ZONES,
            "and not (need.rows and need.rows <= lasting)",
            "and not (need.rows and need.rows < lasting)",
        ),
        bug("the row before stands for a default", LAST, "== (-1, None)", "== (-1, default)"),
        bug("any row before is the last one", LAST, "== (-1, None)", "== (offset, None)"),
        bug("a last value is the one before it", LAST, "if running.what is Form.LATEST else", "if False else"),
        bug(
            "a last value is that of the row alone",
            LAST,
            "first.zip_with(first.is_not_null(), then) if first.null_count() else first",
            "first",
        ),
        bug(
            "rows of a partition are not counted on",
            LAST,
            "last.get_column(name).fill_null(0) + 1",
            "last.get_column(name).fill_null(0)",
        ),
        bug(
            "a partition has a row before its first one",
            ARRAYS,
            "known = there if known is None else known & there",
            "known = there",
        ),
        bug(
            "a row that comes to a partition without room overwrites another",
            ARRAYS,
            "np.ones(len(partitions), dtype=np.int64) if one_each",
            "self._room[partitions].astype(np.int64) if one_each",
        ),
        bug(
            "partitions with a row are empty",
            HELD,
            "return np.ones(len(self.partitions), dtype=np.bool_)",
            "return np.zeros(len(self.partitions), dtype=np.bool_)",
        ),
        bug("rows that outgrow their room overwrite others", ARRAYS, "            self._used += int(more.sum())\n", ""),
        bug(
            "packed rows stand where they stood",
            ARRAYS,
            "self._first, self._room, self._used = first, room.astype(np.int32), used",
            "self._room, self._used = room.astype(np.int32), used",
        ),
        bug(
            "a column is packed as there is no memory for the next",
            ARRAYS,
            "packed = [column.packed(at, to, used) for column in self._columns.values()]\n",
            "packed = []\n"
            "            for column in self._columns.values():\n"
            "                packed.append(column.packed(at, to, used))\n"
            "                column.hold(*packed[-1])\n",
        ),
        bug(
            "a value takes the NULL that stood there",
            ARRAYS,
            "rows.is_null().to_numpy() if missing else False",
            "rows.is_null().to_numpy() if missing else self._missing[at]",
        ),
        bug("integers are cut to fewer bytes", ARRAYS, "if needed.itemsize > held.itemsize:", "if False:"),
        bug(
            "integers are lost as others need more bytes",
            ARRAYS,
            "            values[:height] = self._values[:height]\n",
            "",
        ),
        bug(
            "a second row of a partition stands in the place of another",
            ARRAYS,
            "if self._is_single and not one_each and count.max(initial=0) > 1:",
            "if False:",
        ),
        bug(
            "rows that stood by partition are packed as they stand",
            ARRAYS,
            "            if self._is_single:\n                self._note_places()\n            first, used",
            "            first, used",
        ),
        bug(
            "what running values are made of is kept with each row",
            LAYOUT,
            "for column in self.node.columns if self.looks_at_rows(column) for term",
            "for column in self.node.columns for term",
        ),
        bug(
            "a value that differs is looked for without the row before",
            LAYOUT,
            "isinstance(column, PreviousDifferent) or self.running(column) is None",
            "self.running(column) is None",
        ),
        bug(
            "zeros of two signs differ",
            ORDER_KEYS,
            "0.0).to_numpy() + 0.0  #",
            "0.0).to_numpy()  #",
        ),
        bug("NaN is no last value", ORDER_KEYS, "np.where(np.isnan(values), np.int64((1 << 63) - 1), keys)", "keys"),
        bug(
            "running values of kept rows are those of others",
            BLOCK,
            "self.height + self.source[places[kept] - self.height]",
            "places[kept]",
        ),
        bug("a default stands for NULL", VALUES, "pl.when(pl.Series(missing))", "pl.when(values.is_null())"),
        bug("the greatest is the least", FRAMES, "return keys if self.form is Form.LEAST else ~keys", "return keys"),
        bug("a sum that does not fit is NULL in silence", VALUES, "if self.failed is None:", "if False:"),
        bug(
            "columns read what is not known with the row",
            MEANING,
            "        columns = (self.schema[column.name] for column in self.columns if wait_of(column) is None)\n",
            "        columns = (self.schema[column.name] for column in self.columns)\n",
        ),
        bug(
            "rows without a value are seen by what reads others",
            CHAINS,
            "    if any(resolve(term, known).fallible for term in terms if not direct or not attributes_of(term) <= own):\n",
            "    if False:\n",
        ),
        bug(
            "a sum that does not fit is noted where others read it, too",
            OPERATOR,
            "    before = Values(layout, block, None if values.failed is None else [], values.runs, values.frames)\n",
            "    before = Values(layout, block, values.failed, values.runs, values.frames)\n",
        ),
        bug(
            "what columns read is in the order of places",
            OPERATOR,
            "    return values.of(column, ordered).gather(rank[block.new_places])\n",
            "    return values.of(column, ordered)\n",
        ),
        bug(
            "last rows know what columns read",
            LAST,
            "read = rows.with_columns(computed[name] for name in",
            "read = rows.with_columns(computed[name].clear(rows.height) for name in",
        ),
        bug(
            "ties come in any order",
            EVENTS,
            "pl.arg_sort_by(reading.time, reading.tie)",
            "pl.arg_sort_by(reading.time)",
        ),
        bug(
            "rows that wait are not looked at when the input ends",
            OPERATOR,
            "np.minimum(look, EVER), NO_LOOK)",
            "look, NO_LOOK)",
        ),
        bug(
            "after a restart nothing is due",
            OPERATOR,
            "state.put(replace(stored, look=left.look))",
            "state.put(stored)",
        ),
        bug(
            "another instant progresses by itself",
            ZONES,
            "if not node.waits and schema.temporal == (node.time,):\n"
            "            return build.named(event_zones(zones, reading, node.time), node.schema)",
            "if not node.waits:\n            return build.named(zones, node.schema)",
        ),
        bug("a limited wait bounds nothing", ZONES, "if len(longest) == len(waits) else []", "if False else []"),
        bug(
            "a running value needs no row",
            ZONES,
            "case RowNumber() | PreviousDifferent():\n            return Need(1, None)",
            "case RowNumber() | PreviousDifferent():\n            return Need(0, None)",
        ),
        bug("what is let through needs no row", ZONES, "return Need(1, within)\n", "return Need(0, within)\n"),
        bug(
            "a key is let through a tick too soon",
            RUNNING,
            "time[i] - at[i - 1] <= within",
            "time[i] - at[i - 1] < within",
        ),
        bug(
            "what is dropped puts off what is let through",
            RUNNING,
            "at[i], is_reported[i] = at[i - 1], 0",
            "at[i], is_reported[i] = time[i], 0",
        ),
        bug(
            "equal rows of a key are tied",
            OPERATOR,
            "            if self.node.merges_equal:\n",
            "            if False:\n",
        ),
        bug(
            "equal rows are set aside with others that are tied",
            OPERATOR,
            "        if self.node.merges_equal:\n            events = ",
            "        if False:\n            events = ",
        ),
        bug(
            "an order that is a key is named twice",
            EVENTS,
            "order = list(dict.fromkeys([*reading.keys, reading.time, *(() if reading.tie is None else (reading.tie,))]))",
            "order = [*reading.keys, reading.time, *(() if reading.tie is None else (reading.tie,))]",
        ),
        bug(
            "a value is counted until it has left as often as it came",
            MOVING,
            "many -= times[number[first]] == 0",
            "many -= times[number[first]] == 1",
        ),
        bug("a quantile keeps what has left the frame", WHOLE, "del ordered[bisect_left", "_ = ordered[bisect_left"),
        bug("a quantile goes on in the next key", WHOLE, "if low >= reached:", "if False:"),
        bug(
            "a variance counts rows without a value", WHOLE, "np.cumsum(valid(rows), ", "np.cumsum(np.ones(len(rows)), "
        ),
        bug("what is no number has a variance", WHOLE, "elif strange:", "elif False:"),
        bug(
            "an aggregate that keeps every value may look back without end",
            MEANING,
            "not entry.merges and column.frame.before is None",
            "False",
        ),
        bug(
            "a text in order of time needs an order of rows",
            MEANING,
            " and aggregate.entry.form in (Form.EARLIEST, Form.LATEST)",
            "",
        ),
        bug(
            "equal rows are one for every column",
            MEANING,
            "return all(isinstance(column, Reported) for column in self.columns)",
            "return True",
        ),
        bug(
            "a text makes constants of all values",
            "algebra/dsl/checks/calls.py",
            "if values and len(texts) == len(values):",
            "if texts:",
        ),
        bug(
            "a default is rounded to what the values hold",
            LITERALS,
            "if held.denominator == 1 and abs(held) <= most else constant",
            "if abs(held) <= most else constant",
        ),
        bug(
            "a default may have more digits than the values",
            LITERALS,
            "if held.denominator == 1 and abs(held) <= most else constant",
            "if held.denominator == 1 else constant",
        ),
    ),
)
