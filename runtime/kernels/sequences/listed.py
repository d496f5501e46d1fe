"""All matches of rows that may be skipped, listed from the row that each ends with (rule R58).

Beginnings of matches are not told apart by their rows, as threads are. An *entry* stands for all of those that a row
has brought to a state: of these it knows the latest start, and by links the last entries of the states that they were
in before.
"""

from __future__ import annotations

from typing import Final

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
    MOST,
    PARTITION,
    ROWS,
    UNTIL,
    WORTH,
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

#: Columns of an entry: its state, what says its row, the latest start, whether a match begins with it, the entry of the
#: state before it, its first link, and the number of the first link of its row. Entries and links have numbers in their
#: partition.
ENTRY_WIDTH: Final = 7
STATE, ROW, START, BEGUN, BEFORE, LINK, LINKED = range(ENTRY_WIDTH)
#: Columns of a link: the last entry of a state before the row, and the next link.
LINK_WIDTH: Final = 2
ENTRY, NEXT = range(LINK_WIDTH)
#: Columns of what is kept of a state beside these: the state, and the number of its last entry.
LAST_WIDTH: Final = 2
ITS_STATE, ITS_LAST = range(LAST_WIDTH)
#: Columns of a step from the end of a match to its beginning: an entry, the next one before it to go on with, and the
#: link of that.
HERE, CANDIDATE, ITS_LINK = range(3)
#: No entry, and no link.
NOTHING = -1

_OUT_STATES = nb.int16[::1]


@compiled(nb.int64(nb.int64, nb.int64, nb.int64, nb.int64, TABLE, OUT_TABLE), borrows=True)
def value_of(number: int, column: int, at: int, old: int, known: Int64Array, new: Int64Array) -> int:
    """What a row has in a column: those with numbers below `old` are in the table `known`, number 0 at `at`."""
    value: int = known[at + number, column] if number < old else new[number - old, column]
    return value


@compiled(nb.int64(nb.int64, *(nb.int64,) * 3, TABLE, OUT_TABLE), borrows=True)
def start_of(number: int, at: int, first: int, old: int, known: Int64Array, new: Int64Array) -> int:
    """The latest start of an entry; of one that is gone, `NEVER`: no match begins with the rows that are gone."""
    if number < first:
        return NEVER
    start: int = value_of(number, START, at, old, known, new)
    return start


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, OUT, OUT, nb.int64),
        *(INTS, INTS, TABLE, INTS, INTS, INTS),
        *(OUT, OUT, OUT_TABLE, OUT_TABLE, OUT_TABLE),
        *(OUT_TABLE, _OUT_STATES, OUT),
        *(INTS, TABLE, INTS, *(INTS, INTS, INTS, TABLE) * 2),
        *(OUT, OUT_TABLE, *(OUT, OUT, OUT_TABLE) * 2),
    ),
    borrows=True,
)
def listed_matches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array, begin: Int64Array, look: Int64Array, within: int,
    to: Int64Array, variable: Int64Array, parts: Int64Array, part_of: Int64Array, ending: Int64Array,
    options: Int64Array,
    last: Int64Array, alive: Int64Array, entries: Int64Array, links: Int64Array, way: Int64Array,
    found: Int64Array, states: Int16Array, places: Int64Array,
    number: Int64Array, given: Int64Array, before: Int64Array,
    entry_at: Int64Array, entry_from: Int64Array, entry_end: Int64Array, known: Int64Array,
    link_at: Int64Array, link_from: Int64Array, link_end: Int64Array, known_links: Int64Array,
    waits: Int64Array, left: Int64Array,
    entry_first: Int64Array, entry_count: Int64Array, made: Int64Array,
    link_first: Int64Array, link_count: Int64Array, made_links: Int64Array,
) -> int:  # fmt: skip
    """What `every_match` writes, of patterns whose conditions rows decide by themselves and whose matches may skip any
    rows and last `within` ticks at most; the number of matches, or -1 where an array has no room.

    `last` has by state its last entry, `alive` the states that have one. What is `given` and `left`, and what is made,
    is as there, with the last entries of states in the place of threads, and entries and links in that of nodes.
    """
    after, until, matches, written = options[AFTER], options[UNTIL], 0, 0
    noted, noted_entries, noted_links = 0, 0, 0
    for p in range(len(offsets) - 1):
        first, end = offsets[p], offsets[p + 1]
        at, gone, old = entry_at[p], entry_from[p], entry_end[p]
        links_at, old_links = link_at[p], link_end[p]
        used, linked, living = old, old_links, before[p + 1] - before[p]
        for k in range(living):
            alive[k] = given[before[p] + k, ITS_STATE]
            last[alive[k]] = given[before[p] + k, ITS_LAST]
        for row in range(first + begin[p], end):
            since = time[row] - within if within < EVER else NEVER
            begins = (satisfied[row] & options[BEGINS]) != 0
            of_row, of_row_links, still = used, linked, 0
            for a in range(living + (1 if begins else 0)):
                source = 0 if a == living else alive[a]
                its_start = 0 if a == living else start_of(last[source], at, gone, old, known, entries)
                if a < living:
                    if its_start < since:
                        last[source] = NOTHING
                        continue
                    alive[still] = source
                    still += 1
                for k in range(parts[part_of[source], FIRST_WAY], parts[part_of[source], LAST_WAY]):
                    state = to[k]
                    if state < 0 or not (satisfied[row] >> variable[state]) & 1:
                        continue
                    its = of_row
                    while its < used and entries[its - old, STATE] != state:
                        its += 1
                    here = its - old
                    if its == used:
                        if here == len(entries):
                            return -1
                        entries[here, STATE], entries[here, ROW], entries[here, START] = state, number[row], NEVER
                        entries[here, BEGUN], entries[here, BEFORE] = 0, NOTHING
                        entries[here, LINK], entries[here, LINKED] = NOTHING, of_row_links
                        used += 1
                    if source == 0:
                        entries[here, BEGUN], entries[here, START] = 1, time[row]
                        continue
                    if linked - old_links == len(links):
                        return -1
                    links[linked - old_links, ENTRY] = last[source]
                    links[linked - old_links, NEXT] = entries[here, LINK]
                    entries[here, LINK] = linked
                    linked += 1
                    entries[here, START] = max(entries[here, START], its_start)
            living = still
            for its in range(of_row, used):
                state = entries[its - old, STATE]
                entries[its - old, BEFORE] = last[state]
                if last[state] == NOTHING:
                    alive[living] = state
                    living += 1
                last[state] = its
            if time[row] <= after:
                continue
            for its in range(of_row, used):
                if not ending[entries[its - old, STATE]] & MAY_END:
                    continue
                depth, entry = 0, its
                way[0, HERE], way[0, CANDIDATE], way[0, ITS_LINK] = its, NOTHING, entries[its - old, LINK]
                while depth >= 0:
                    if entry != NOTHING and value_of(entry, BEGUN, at, old, known, entries):
                        length = depth + 1
                        if matches == len(found) or written + length > len(states):
                            return -1
                        found[matches, PARTITION] = p
                        found[matches, FIRST] = value_of(entry, ROW, at, old, known, entries)
                        found[matches, LENGTH], found[matches, DETECTED] = length, min(time[row], options[END])
                        found[matches, ROWS] = written
                        matches += 1
                        for step in range(depth, -1, -1):
                            states[written] = value_of(way[step, HERE], STATE, at, old, known, entries)
                            places[written] = value_of(way[step, HERE], ROW, at, old, known, entries)
                            written += 1
                    entry = way[depth, CANDIDATE]
                    if entry != NOTHING and start_of(entry, at, gone, old, known, entries) < since:
                        entry = NOTHING
                    while entry == NOTHING and way[depth, ITS_LINK] != NOTHING:
                        link = way[depth, ITS_LINK]
                        entry = value_of(link, ENTRY, links_at, old_links, known_links, links)
                        way[depth, ITS_LINK] = value_of(link, NEXT, links_at, old_links, known_links, links)
                        if start_of(entry, at, gone, old, known, entries) < since:
                            entry = NOTHING
                    if entry == NOTHING:
                        depth -= 1
                        continue
                    way[depth, CANDIDATE] = value_of(entry, BEFORE, at, old, known, entries)
                    depth += 1
                    if depth == len(way):
                        return -1
                    way[depth, HERE], way[depth, CANDIDATE] = entry, NOTHING
                    way[depth, ITS_LINK] = value_of(entry, LINK, at, old, known, entries)
        for a in range(living):
            if start_of(last[alive[a]], at, gone, old, known, entries) + within <= until and within < EVER:
                last[alive[a]] = NOTHING
        # The entries before that of the first start that is open are of no more use.
        oldest, over = gone, NO_LOOK
        while oldest < used:
            part = part_of[value_of(oldest, STATE, at, old, known, entries)]
            goes_on = parts[part, FIRST_COMPLETION] < parts[part, LAST_COMPLETION]
            if goes_on and value_of(oldest, BEGUN, at, old, known, entries):
                over = value_of(oldest, START, at, old, known, entries) + within if within < EVER else EVER
                if over > until:
                    break
            oldest += 1
        waits[p], entry_count[p], link_count[p], open_ = 0, 0, 0, 0
        begin[p], look[p] = number[end - 1] + 1 if end > first else first, NO_LOOK
        if oldest < used:
            begun = value_of(oldest, ROW, at, old, known, entries)
            oldest_link = value_of(oldest, LINKED, at, old, known, entries)
            height, begin[p], look[p] = begin[p] - begun, begun, over
            more, more_links = used - max(oldest, old), linked - max(oldest_link, old_links)
            size = used - oldest + linked - oldest_link
            if height >= options[WORTH] and size <= options[MOST] * height:
                if noted + living > len(left) or noted_entries + more > len(made):
                    return -1
                if noted_links + more_links > len(made_links):
                    return -1
                entry_first[p], entry_count[p] = oldest, more
                link_first[p], link_count[p] = oldest_link, more_links
                for a in range(living):
                    if last[alive[a]] != NOTHING:
                        left[noted, ITS_STATE], left[noted, ITS_LAST] = alive[a], last[alive[a]]
                        noted += 1
                        open_ += 1
                for entry in range(used - more - old, used - old):
                    for c in range(entries.shape[1]):
                        made[noted_entries, c] = entries[entry, c]
                    noted_entries += 1
                for link in range(linked - more_links - old_links, linked - old_links):
                    for c in range(links.shape[1]):
                        made_links[noted_links, c] = links[link, c]
                    noted_links += 1
                waits[p] = open_
        for a in range(living):
            last[alive[a]] = NOTHING
    return matches
