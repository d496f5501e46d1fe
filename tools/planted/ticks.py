"""Slips in instants at equal distances that follow rows."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

SPANS = "runtime/ordered/ticks/spans.py"
OPERATOR = "runtime/ordered/ticks/operator.py"
NEW_EVENTS = "runtime/ordered/new_events.py"
SPARK = "runtime/engines/spark/executor.py"
ZONES = "analysis/ordered/ticks.py"
END = "runtime/batch/end_of_input.py"

GROUP = Group(
    "ticks",
    ("tests/runtime/test_ticks.py", "tests/properties/test_operators.py"),
    (
        bug(
            "a tick of two rows is two",
            SPANS,
            "        high[:-1][same] = np.minimum(high[:-1], at[1:] - 1)[same]\n",
            "",
        ),
        bug(
            "the next row takes the tick before its instant",
            SPANS,
            "np.minimum(high[:-1], at[1:] - 1)[same]",
            "np.minimum(high[:-1], at[1:] - 2)[same]",
        ),
        bug(
            "ticks are listed however many they are",
            SPANS,
            "(most := int(many.max())) > MOST_OF_A_ROW or",
            "(most := int(many.max())) > MOST_OF_A_ROW << 40 or",
        ),
        bug("ticks of many rows are listed however many they are", SPANS, " or in_all > MOST_IN_ALL", ""),
        bug(
            "ticks end a moment before their limit",
            SPANS,
            "high = np.minimum(at + node.within, until)",
            "high = np.minimum(at + node.within - 1, until)",
        ),
        bug(
            "a tick is there before its instant",
            SPANS,
            "high = np.minimum(at + node.within, until)",
            "high = at + node.within",
        ),
        bug(
            "ticks are told again",
            SPANS,
            "        return cls(of, at, np.maximum(at, after + 1), high)\n",
            "        return cls(of, at, at, high)\n",
        ),
        bug(
            "ticks for ever are told again",
            SPANS,
            "return cls(of, at, np.maximum(at, after + 1), np.full(len(at), until))",
            "return cls(of, at, at, np.full(len(at), until))",
        ),
        bug(
            "every row has ticks for ever",
            SPANS,
            "            first[1:] = of[1:] != of[:-1]\n            of, at = of[first]",
            "            of, at = of[first]",
        ),
        bug(
            "the first tick is after the row",
            SPANS,
            "    return -((node.offset - instants) // node.every) * node.every + node.offset\n",
            "    return ((instants - node.offset) // node.every + 1) * node.every + node.offset\n",
        ),
        bug(
            "the first row is remembered",
            SPANS,
            "        last[:-1] = self.of[1:] != self.of[:-1]\n",
            "        last[1:] = self.of[1:] != self.of[:-1]\n",
        ),
        bug(
            "partitions stay after their last tick",
            OPERATOR,
            "rows.filter(pl.Series(lasting(self.node, rows, reached)))",
            "rows",
        ),
        bug(
            "ticks come with rows only",
            OPERATOR,
            "    look[rows.get_column(PARTITION).to_numpy()] = following(node, rows, reached)\n",
            "",
        ),
        bug(
            "after a start ticks come with rows only",
            OPERATOR,
            "state.put(replace(stored, look=look))",
            "state.put(stored)",
        ),
        bug(
            "ticks for ever end with what was reached",
            OPERATOR,
            "return -EVER if end is None else end",
            "return -EVER",
        ),
        bug(
            "ticks for ever end before the last row that they follow",
            OPERATOR,
            "end = latest(self.node.readings[0], rows, close_at)",
            "end = latest(self.node.readings[0], rows.clear(), close_at)",
        ),
        bug(
            "ticks for ever end at the last row, whatever was declared",
            NEW_EVENTS,
            "    known = [] if instant is None else [instant]\n",
            "    known = [instant] if instant is not None and not rows.height else []\n",
        ),
        bug(
            "a share of ticks ends at its own last row",
            SPARK,
            "self._ends(batch, jobs, shards)\n",
            "[job.close_at for job in jobs]\n",
        ),
        bug("where the input has come to is nobody's end", END, "or not ordered.node.goes_on:", "or True:"),
        bug(
            "ticks for ever end a moment too early",
            END,
            "return None if passed is None else passed.at",
            "return None if passed is None else passed.at - 1",
        ),
        bug(
            "a tick has an end that its rows have not",
            ZONES,
            'limit = () if node.within is None else (Compare(tick, "<=", Shift(row, node.within)),)',
            'limit = (Compare(tick, "<=", Shift(row, node.within or 0)),)',
        ),
    ),
)
