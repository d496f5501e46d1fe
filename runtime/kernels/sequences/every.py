"""All matches of all partitions: of adjacent rows, skipping till the next row that fits, or skipping any rows."""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int16Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.absences import ITS_VARIABLE, come_before, comes, fate_of
from tidegate.runtime.kernels.sequences.ahead import may_hold
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS, holds, match_row
from tidegate.runtime.kernels.sequences.threads import (
    ABSENT,
    ASKED,
    COME,
    COUNT,
    DEATH,
    EVER,
    FIRST_COMPLETION,
    FIRST_WAY,
    GONE,
    LAST_COMPLETION,
    LAST_WAY,
    NEVER,
    NO_LOOK,
    NODE,
    NOWHERE,
    PATTERN,
    RANK,
    REGISTERS,
    STATE,
    SURE,
    WAYS,
    keeps_limits,
    last_instant,
)

#: Where the first row of a thread stands: threads of all matches may take all ways on.
START: Final = WAYS
#: Which rows that must not come have come behind the last row of a thread: no match is preferred to another.
HIT: Final = RANK
#: The state of a thread that has ended.
ENDED: Final = -1
#: What a state is, as a mask: some match ends there, and none does whose rows so far are these.
MAY_END, IS_VAIN = 1, 2
#: Columns of a node: the node before, the state, the row, and how many nodes there are with it.
NODE_WIDTH: Final = 4
BEFORE, ITS_STATE, ROW, DEPTH = range(NODE_WIDTH)
#: Columns of a match: its partition, first row, length, instant, and where its rows begin in their lists.
PARTITION, FIRST, LENGTH, DETECTED, ROWS = 0, 1, 2, 3, 5
#: What an array of options has, by place: which rows are skipped, the variables that a match may begin with, the
#: progress before and now, how many matches may begin with one row, 0 for any number, the last instant, whether the
#: input has ended, how many rows a search has to wait with so that its threads are worth keeping, and how many threads
#: and nodes are kept for each of these, at most.
SKIPS, BEGINS, AFTER, UNTIL, PER_START, END, CLOSED, WORTH, MOST = range(9)
CONTIGUOUS, NEXT, ANY = range(3)
#: Columns of an excess: the row with which there are too many, below 0 where there never are; the row that they begin
#: with; and whether so many are matches, not only beginnings of some.
BY, BEGUN, ARE_MATCHES = range(3)
#: The place of matches among counts; those of threads by their residual are behind it.
MATCHES: Final = 0

_OUT_STATES = nb.int16[::1]


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, OUT, OUT),
        *PATTERN,
        *(INTS, INTS, INTS, INTS),
        *(TABLE, TABLE, INTS, TABLE, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
        *(OUT_TABLE, _OUT_STATES, OUT, INTS, OUT_TABLE, OUT_TABLE),
        *(INTS, TABLE, INTS, INTS, INTS, INTS, TABLE),
        *(OUT, OUT_TABLE, OUT, OUT, OUT_TABLE),
    ),
    borrows=True,
)
def every_match(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array, begin: Int64Array, look: Int64Array,
    to: Int64Array, variable: Int64Array, guards: Int64Array, parts: Int64Array, part_of: Int64Array,
    ends: Int64Array, ends_of: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    ahead: Int64Array, later_of: Int64Array, later: Int64Array, reads: Int64Array,
    absences: Int64Array, limits: Int64Array, demands: Int64Array, completions: Int64Array,
    wanted: Int64Array, watched: Int64Array, ending: Int64Array, options: Int64Array,
    sure: Int64Array, gone: Int64Array, come: Int64Array, following_row: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, nodes: Int64Array, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
    found: Int64Array, states: Int16Array, places: Int64Array,
    residuals: Int64Array, counts: Int64Array, excess: Int64Array,
    number: Int64Array, given: Int64Array, given_of: Int64Array, known_at: Int64Array, known_first: Int64Array,
    known_end: Int64Array, known_nodes: Int64Array,
    waits: Int64Array, left: Int64Array, node_first: Int64Array, node_count: Int64Array, made: Int64Array,
) -> int:  # fmt: skip
    """Writes the matches that become certain after the progress before to `found`, and the states and numbers of their
    rows to `states` and `places`; the number of matches, or -1 where an array has no room.

    The automaton is deterministic, so each thread has matched other rows than all others, or with other variables.
    By state, `wanted` has the variables of its ways on, as a mask, and `watched` the rows that must not come before its
    next one; `ending` says whether a match ends there. Partitions are as in `preferred_matches`; `begin` becomes the
    number of the first row at which a match may begin that is still to come, or to be decided. What turns out not to
    hold is left out at once: it stands in the way of no other match.

    With a limit per start, `counts` has by the place of a row in its partition how many matches begin with it, and how
    many threads by the `residuals` of their states, from 1 on. After each row none of these may be more; `excess` has
    by partition where the first is, and the partition is searched no further.

    A search that was open goes on with the `given` threads, from `given_of[p]` to `given_of[p + 1]`; `begin` is the
    first new row then. Nodes have numbers: those of partition p from `known_first[p]` to `known_end[p]` are in the
    table `known_nodes`, number 0 at `known_at[p]`. `number` has by row what nodes say of it. Where threads are worth
    keeping, as many as `waits` says are written to `left`, and the nodes of this call to `made`: `node_count` of them,
    the last ones of those that are needed, which are all from `node_first` on.
    """
    skips, after, until, per_start = options[SKIPS], options[AFTER], options[UNTIL], options[PER_START]
    closed, matches, written, width = options[CLOSED] != 0, 0, 0, threads.shape[1]
    noted, noted_nodes = 0, 0
    for p in range(len(offsets) - 1):
        first, end, at, old = offsets[p], offsets[p + 1], known_at[p], known_end[p]
        size, used, undecided, decided_at = given_of[p + 1] - given_of[p], 0, end, NO_LOOK
        if size >= len(threads):
            return -1
        for k in range(size):
            for r in range(width):
                threads[k, r] = given[given_of[p] + k, r]
        for row in range(first + begin[p], end):
            begins = (satisfied[row] & options[BEGINS]) != 0
            if size == 0 and not begins:
                continue
            total, ended, too_many = size, 0, end
            if begins:
                if size + 1 >= len(threads):
                    return -1
                threads[size, STATE], threads[size, START], threads[size, NODE] = 0, row, -1
                threads[size, DEATH], threads[size, HIT] = EVER, come[row]
                threads[size, SURE], threads[size, GONE] = -1, NOWHERE
                for r in range(REGISTERS, width):
                    threads[size, r] = -1
                for g in range(len(groups)):
                    if groups[g, 0] >= COUNT:
                        for k in range(groups[g, 2], groups[g, 2] + groups[g, 3]):
                            threads[size, REGISTERS + numbers[k]] = 0
                if per_start:
                    for s in range(counts.shape[1]):
                        counts[row - first, s] = 0
                total += 1
            current = total
            for a in range(current):
                state = threads[a, STATE]
                if threads[a, DEATH] < time[row]:
                    if per_start:
                        counts[threads[a, START] - first, residuals[state]] -= 1
                    threads[a, STATE] = ENDED
                    ended += 1
                    continue
                goes_on, known = False, -1
                if satisfied[row] & wanted[state]:
                    for k in range(parts[part_of[state], FIRST_WAY], parts[part_of[state], LAST_WAY]):
                        following = to[k]
                        if following < 0 or not (satisfied[row] >> variable[following]) & 1:
                            continue
                        if state > 0 and (threads[a, HIT] & guards[k, ASKED]) != guards[k, COME]:
                            continue
                        if total + 1 >= len(threads) or used == len(nodes):
                            return -1
                        named = variable[following]
                        for r in range(REGISTERS, width):
                            threads[total, r] = threads[a, r]
                        match_row(
                            threads, total, named, row, groups, numbers,
                            int_columns, double_columns, marks, stack, double_stack,
                        )  # fmt: skip
                        if programs[named] < programs[named + 1] and not holds(
                            programs[named], programs[named + 1], code, ints, doubles, int_columns, double_columns,
                            marks, threads, total, row, len(time), stack, double_stack, mark,
                        ):  # fmt: skip
                            continue
                        if state == 0 and guards[k, ASKED]:
                            before = threads[a, HIT] | come_before(
                                row, first, guards[k, ASKED], absences, satisfied, time, programs, code, ints, doubles,
                                groups, numbers, int_columns, double_columns, marks,
                                threads, total, stack, double_stack, mark,
                            )  # fmt: skip
                            if (before & guards[k, ASKED]) != guards[k, COME]:
                                continue
                        threads[total, SURE], threads[total, GONE], threads[total, HIT] = -1, NOWHERE, 0
                        if (ahead[named] >= 0 or later_of[named] < later_of[named + 1]) and not may_hold(
                            named, row, end, closed, ahead, later_of, later, reads, sure, gone, code, ints, doubles,
                            int_columns, double_columns, marks, threads, total, len(time), stack, double_stack, mark,
                        ):  # fmt: skip
                            continue
                        start, death, part = threads[a, START], NEVER, part_of[following]
                        if parts[part, FIRST_COMPLETION] < parts[part, LAST_COMPLETION]:
                            death = EVER
                            if len(limits):
                                death = last_instant(
                                    limits, demands, 0, completions,
                                    parts[part, FIRST_COMPLETION], parts[part, LAST_COMPLETION],
                                    threads, total, start, row, time,
                                )  # fmt: skip
                        ends_here = (ending[following] & MAY_END) != 0 and keeps_limits(
                            limits, threads, total, start, row, time
                        )
                        if not ends_here and death < time[row]:
                            continue
                        if threads[total, GONE] != NOWHERE:
                            known = max(known, threads[total, GONE])
                            continue
                        if threads[total, SURE] == end and not closed:
                            known = end
                        else:
                            goes_on = True
                        if ending[following] & IS_VAIN:
                            continue
                        threads[total, SURE] = max(threads[total, SURE], threads[a, SURE])
                        last, depth = threads[a, NODE], 1
                        if last >= 0:
                            depth += known_nodes[at + last, DEPTH] if last < old else nodes[last - old, DEPTH]
                        nodes[used, BEFORE], nodes[used, ITS_STATE], nodes[used, ROW] = last, following, number[row]
                        nodes[used, DEPTH] = depth
                        if ends_here and per_start:
                            counts[start - first, MATCHES] += 1
                            if counts[start - first, MATCHES] > per_start:
                                too_many = min(too_many, start)
                        detected = NO_LOOK
                        if ends_here:
                            for e in range(ends_of[following], ends_of[following + 1]):
                                is_match, fate = 1, time[row]
                                if ends[e, ABSENT] or threads[total, SURE] > row:
                                    is_match, fate = fate_of(
                                        row, end, ends[e, ABSENT], False, absences, following_row, time,
                                        programs, code, ints, doubles, groups, numbers,
                                        int_columns, double_columns, marks,
                                        threads, total, stack, double_stack, mark,
                                    )  # fmt: skip
                                if is_match:
                                    detected = min(detected, max(fate, time[row]))
                        if detected > until and detected < NO_LOOK:
                            undecided, decided_at = min(undecided, start), min(decided_at, detected)
                        elif detected > after and detected < NO_LOOK:
                            length = nodes[used, DEPTH]
                            if matches == len(found) or written + length > len(states):
                                return -1
                            found[matches, PARTITION], found[matches, FIRST] = p, start
                            found[matches, LENGTH], found[matches, DETECTED] = length, min(detected, options[END])
                            found[matches, ROWS] = written
                            matches += 1
                            written += length
                            node = old + used
                            for step in range(written - 1, written - length - 1, -1):
                                if node < old:
                                    states[step], places[step] = (
                                        known_nodes[at + node, ITS_STATE],
                                        known_nodes[at + node, ROW],
                                    )
                                    node = known_nodes[at + node, BEFORE]
                                else:
                                    states[step], places[step] = nodes[node - old, ITS_STATE], nodes[node - old, ROW]
                                    node = nodes[node - old, BEFORE]
                        if death >= time[row]:
                            threads[total, STATE], threads[total, START] = following, start
                            threads[total, NODE], threads[total, DEATH] = old + used, death
                            used += 1
                            total += 1
                            if per_start:
                                counts[start - first, residuals[following]] += 1
                if state == 0 or skips == CONTIGUOUS or (skips == NEXT and goes_on):
                    if per_start and state > 0:
                        counts[threads[a, START] - first, residuals[state]] -= 1
                    threads[a, STATE] = ENDED
                    ended += 1
                    continue
                if skips == NEXT:
                    threads[a, SURE] = max(threads[a, SURE], known)
                if watched[state]:
                    for n in range(len(absences)):
                        may = (watched[state] >> n) & 1 and (satisfied[row] >> absences[n, ITS_VARIABLE]) & 1
                        if may and not (threads[a, HIT] >> n) & 1 and comes(
                            absences[n, ITS_VARIABLE], row, programs, code, ints, doubles, groups, numbers,
                            int_columns, double_columns, marks, threads, a, len(time), stack, double_stack, mark,
                        ):  # fmt: skip
                            threads[a, HIT] |= 1 << n
            if per_start:
                for a in range(current, total):
                    start = threads[a, START]
                    if counts[start - first, residuals[threads[a, STATE]]] > per_start:
                        too_many = min(too_many, start)
                if too_many < end:
                    excess[p, BY], excess[p, BEGUN] = row, too_many
                    excess[p, ARE_MATCHES] = counts[too_many - first, MATCHES] > per_start
                    break
            size = total
            if ended:
                size = 0
                for a in range(total):
                    if threads[a, STATE] != ENDED:
                        if size < a:
                            for r in range(width):
                                threads[size, r] = threads[a, r]
                        size += 1
                if size == 0:
                    used = 0
        earliest, due, open_ = end, NO_LOOK, 0
        for a in range(size):
            if threads[a, DEATH] > until:
                open_ += 1
                if threads[a, START] < earliest:
                    earliest, due = threads[a, START], threads[a, DEATH]
                elif threads[a, START] == earliest:
                    due = max(due, threads[a, DEATH])
        look[p], waits[p], node_count[p], undecided = min(due, decided_at), 0, 0, min(earliest, undecided)
        begin[p] = number[end - 1] + 1 if end > first else first
        if undecided == end:
            continue
        begun = number[undecided]
        height, begin[p] = begin[p] - begun, begun
        oldest = known_first[p]
        while oldest < old + used and begun > (
            known_nodes[at + oldest, ROW] if oldest < old else nodes[oldest - old, ROW]
        ):
            oldest += 1
        if height < options[WORTH] or open_ + old + used - oldest > options[MOST] * height:
            continue
        more = old + used - max(oldest, old)
        if noted + open_ > len(left) or noted_nodes + more > len(made):
            return -1
        waits[p], node_first[p], node_count[p] = open_, oldest, more
        for a in range(size):
            if threads[a, DEATH] > until:
                for r in range(width):
                    left[noted, r] = threads[a, r]
                noted += 1
        for node in range(used - more, used):
            for c in range(nodes.shape[1]):
                made[noted_nodes, c] = nodes[node, c]
            noted_nodes += 1
    return matches
