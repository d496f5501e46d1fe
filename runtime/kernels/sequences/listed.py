"""All matches of rows that may be skipped, listed from the row that each ends with (rule R58).

Beginnings of matches are not told apart by their rows, as threads are. An *entry* stands for all of those that a row
has brought to a state: of these it knows the latest start, and by links the last entries of the states that they were
in before.
"""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Int16Array, Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.every import (
    AFTER,
    BEGINS,
    DETECTED,
    END,
    FIRST,
    LENGTH,
    MAY_END,
    PARTITION,
    ROWS,
    UNTIL,
)
from tidegate.runtime.kernels.sequences.threads import (
    EVER,
    FIRST_COMPLETION,
    FIRST_WAY,
    LAST_COMPLETION,
    LAST_WAY,
    NEVER,
    NO_LOOK,
)

#: Columns of an entry: its state, its row, the latest start, whether a match begins with it, the entry of the state
#: before it, and its first link.
STATE, ROW, START, BEGUN, BEFORE, LINK = range(6)
#: Columns of a link: the last entry of a state before the row, and the next link.
ENTRY, NEXT = range(2)
#: Columns of a step from the end of a match to its beginning: an entry, the next one before it to go on with, and the
#: link of that.
HERE, CANDIDATE, ITS_LINK = range(3)
#: No entry, and no link.
NOTHING = -1

_OUT_STATES = nb.int16[::1]


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, OUT, OUT, nb.int64),
        *(INTS, INTS, TABLE, INTS, INTS, INTS),
        *(OUT, OUT, OUT_TABLE, OUT_TABLE, OUT_TABLE),
        *(OUT_TABLE, _OUT_STATES, OUT),
    ),
    borrows=True,
)
def listed_matches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array, begin: Int64Array, look: Int64Array, within: int,
    to: Int64Array, variable: Int64Array, parts: Int64Array, part_of: Int64Array, ending: Int64Array,
    options: Int64Array,
    last: Int64Array, alive: Int64Array, entries: Int64Array, links: Int64Array, way: Int64Array,
    found: Int64Array, states: Int16Array, places: Int64Array,
) -> int:  # fmt: skip
    """What `every_match` writes, of patterns whose conditions rows decide by themselves and whose matches may skip any
    rows and last `within` ticks at most; the number of matches, or -1 where an array has no room.

    `last` has by state its last entry, `alive` the states that have one.
    """
    after, until, matches, written = options[AFTER], options[UNTIL], 0, 0
    for p in range(len(offsets) - 1):
        first, end = offsets[p], offsets[p + 1]
        used, linked, living, earliest, due = 0, 0, 0, end, NO_LOOK
        for row in range(first + begin[p], end):
            since = time[row] - within if within < EVER else NEVER
            begins = (satisfied[row] & options[BEGINS]) != 0
            of_row, still = used, 0
            for a in range(living + (1 if begins else 0)):
                source = 0 if a == living else alive[a]
                if a < living:
                    if entries[last[source], START] < since:
                        last[source] = NOTHING
                        continue
                    alive[still] = source
                    still += 1
                for k in range(parts[part_of[source], FIRST_WAY], parts[part_of[source], LAST_WAY]):
                    state = to[k]
                    if state < 0 or not (satisfied[row] >> variable[state]) & 1:
                        continue
                    its = of_row
                    while its < used and entries[its, STATE] != state:
                        its += 1
                    if its == used:
                        if used == len(entries):
                            return -1
                        entries[its, STATE], entries[its, ROW], entries[its, START] = state, row, NEVER
                        entries[its, BEGUN], entries[its, BEFORE], entries[its, LINK] = 0, NOTHING, NOTHING
                        used += 1
                    if source == 0:
                        entries[its, BEGUN], entries[its, START] = 1, time[row]
                        part, over = part_of[state], time[row] + within if within < EVER else EVER
                        if earliest == end and over > until:
                            if parts[part, FIRST_COMPLETION] < parts[part, LAST_COMPLETION]:
                                earliest, due = row, over
                        continue
                    if linked == len(links):
                        return -1
                    links[linked, ENTRY], links[linked, NEXT] = last[source], entries[its, LINK]
                    entries[its, LINK] = linked
                    linked += 1
                    entries[its, START] = max(entries[its, START], entries[last[source], START])
            living = still
            for its in range(of_row, used):
                state = entries[its, STATE]
                entries[its, BEFORE] = last[state]
                if last[state] == NOTHING:
                    alive[living] = state
                    living += 1
                last[state] = its
            if time[row] <= after:
                continue
            for its in range(of_row, used):
                if not ending[entries[its, STATE]] & MAY_END:
                    continue
                depth, way[0, HERE], way[0, CANDIDATE], way[0, ITS_LINK] = 0, its, NOTHING, entries[its, LINK]
                at = its
                while depth >= 0:
                    if at != NOTHING and entries[at, BEGUN]:
                        length = depth + 1
                        if matches == len(found) or written + length > len(states):
                            return -1
                        found[matches, PARTITION], found[matches, FIRST] = p, entries[at, ROW]
                        found[matches, LENGTH], found[matches, DETECTED] = length, min(time[row], options[END])
                        found[matches, ROWS] = written
                        matches += 1
                        for step in range(depth, -1, -1):
                            states[written] = entries[way[step, HERE], STATE]
                            places[written] = entries[way[step, HERE], ROW]
                            written += 1
                    at = way[depth, CANDIDATE]
                    while (at == NOTHING or entries[at, START] < since) and way[depth, ITS_LINK] != NOTHING:
                        at = links[way[depth, ITS_LINK], ENTRY]
                        way[depth, ITS_LINK] = links[way[depth, ITS_LINK], NEXT]
                    if at == NOTHING or entries[at, START] < since:
                        depth, at = depth - 1, NOTHING
                        continue
                    way[depth, CANDIDATE] = entries[at, BEFORE]
                    depth += 1
                    way[depth, HERE], way[depth, CANDIDATE], way[depth, ITS_LINK] = at, NOTHING, entries[at, LINK]
        for a in range(living):
            last[alive[a]] = NOTHING
        begin[p], look[p] = earliest - first, due
    return matches
