"""Slips in choosing the orders in which situations of a pattern are looked for, and in choosing them again."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

CHOSEN = "runtime/ordered/match/order.py"
ORDERS = "analysis/ordered/match/chosen_orders.py"
MODEL = "analysis/ordered/match/order.py"

GROUP = Group(
    "orders",
    ("tests/analysis/test_order.py", "tests/runtime/test_match_order.py"),
    (
        bug(
            "partitions without situations count in the averages",
            CHOSEN,
            "int(np.count_nonzero(np.diff(situations.offsets[::width])))",
            "len(situations.offsets[::width]) - 1",
        ),
        bug(
            "definitions are counted as if each had its symbol",
            CHOSEN,
            "mean[number]) for number in definition)",
            "mean[place % width]) for place in range(len(definition)))",
        ),
        bug(
            "the pattern's steps are those of the order before",
            "runtime/ordered/match/operator.py",
            "steps = self.steps if same else",
            "steps = self.steps if True else",
        ),
        bug("averages begin anew each time", CHOSEN, "self.seen.smoothed(", "self.chosen_by.smoothed("),
        bug(
            "orders are chosen by what they were chosen by",
            CHOSEN,
            "orders(seen), seen, seen)",
            "orders(self.seen), seen, seen)",
        ),
        bug(
            "orders that were chosen again were chosen by the first averages",
            CHOSEN,
            "orders(seen), seen, seen)",
            "orders(seen), self.chosen_by, seen)",
        ),
        bug(
            "what has been seen is forgotten where orders stay",
            CHOSEN,
            "return replace(self, seen=seen, counted=left)",
            "return self",
        ),
        bug("any change makes orders be chosen again", CHOSEN, "differs(seen, THRESHOLD)", "differs(seen, 0.0)"),
        bug(
            "changes are compared with the last averages",
            CHOSEN,
            "not self.chosen_by.differs(",
            "not self.seen.differs(",
        ),
        bug("few combinations tell a share", CHOSEN, "counted[0] >= _ENOUGH", "counted[0] >= 1"),
        bug(
            "a share is one of all that was looked at",
            CHOSEN,
            "matches.counters[:, :-1, 1], matches",
            "matches.counters[:, :-1, 0], matches",
        ),
        bug("nothing found means that there is nothing", CHOSEN, "max(passed, 0.5)", "passed"),
        bug("a share counts for every constraint of a step", CHOSEN, " ** (1 / len(pairs))", ""),
        bug(
            "a share is one of the symbol before",
            CHOSEN,
            "np.array(sizes)[self.order[:, 1:]]",
            "np.array(sizes)[self.order[:, :-1]]",
        ),
        bug("counts that are too few are forgotten", CHOSEN, "np.where(enough, 0.0, counted)", "0.0 * counted"),
        bug("counts tell more than once", CHOSEN, "np.where(enough, 0.0, counted)", "counted"),
        bug("counts of an order tell for the next", CHOSEN, "np.where(same[:, None], left, 0.0)", "left"),
        bug("counts of orders that stay are forgotten", CHOSEN, "np.where(same[:, None], left, 0.0)", "0.0 * left"),
        bug("steps without candidates count", CHOSEN, "before * (size > 0)", "before"),
        bug("one trigger tells for all", CHOSEN, "sum(found_) / len(found_)", "found_[0]"),
        bug(
            "what was not seen is not there",
            MODEL,
            "if pair in seen.selectivities else old",
            "if pair in seen.selectivities else 0.0",
        ),
        bug("the last increment counts for all", MODEL, "weight * new + (1 - weight) * old", "new"),
        bug("only growth is a change", MODEL, "abs(new - old) > threshold", "new - old > threshold"),
        bug("a change is told by its size", MODEL, "threshold * max(old, 1e-9)", "threshold"),
        bug(
            "cross products come where they are cheap",
            MODEL,
            "    if not _related(last",
            "    if False and not _related(last",
        ),
        bug(
            "the size of the trigger's buffer counts",
            MODEL,
            " for symbol in bound if symbol != trigger)",
            " for symbol in bound)",
        ),
        bug(
            "constraints to what is not bound yet count",
            MODEL,
            "if i in bound and j in bound)",
            "if i in bound or j in bound)",
        ),
        bug("looking for candidates is free", MODEL, "shorter.cost + looked_for + results", "shorter.cost + results"),
        bug("the dearest order is the best", MODEL, "min(ways, key", "max(ways, key"),
        bug(
            "a pinned order begins with its own first",
            ORDERS,
            "(trigger, *(symbol for symbol in pinned if symbol != trigger))",
            "tuple(pinned)",
        ),
        bug("distances relate nothing", ORDERS, "for i, j in ends if i != j}", "for i, j in ends if i == j}"),
    ),
)
