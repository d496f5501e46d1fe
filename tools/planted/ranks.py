"""Slips in places of rows in their groups."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PLACES = "runtime/ordered/ranks/places.py"
OPERATOR = "runtime/ordered/ranks/operator.py"
ZONES = "analysis/ordered/ranks.py"
BUILD = "algebra/dsl/ranks/build.py"
MEANING = "algebra/ordered/ranks.py"

GROUP = Group(
    "places in groups",
    ("tests/runtime/test_ranks.py", "tests/properties/test_operators.py"),
    (
        bug(
            "rows are ranked from the least on alone",
            PLACES,
            "[by.descending for by in node.order]",
            "[False for _ in node.order]",
        ),
        bug("NULL comes first", PLACES, "nulls_last=True", "nulls_last=False"),
        bug(
            "peers are numbered one after the other",
            PLACES,
            "return self.peer - self.group + 1",
            "return self.numbers()",
        ),
        bug(
            "dense ranks go on from group to group", PLACES, "self.place - self.place[self.group] + 1", "self.place + 1"
        ),
        bug(
            "a rank counts the rows of all groups", PLACES, "return self.peer - self.group + 1", "return self.peer + 1"
        ),
        bug(
            "peers of two groups are one",
            PLACES,
            "differs = begins | _changes(ordered, orders)",
            "differs = _changes(ordered, orders)",
        ),
        bug("peers are numbered as they come", OPERATOR, "if node.needs_order and", "if False and"),
        bug(
            "of peers none is set aside",
            OPERATOR,
            "untied(reading, as_frame(events[0]), order_of(self.node), peers_at)",
            "as_frame(events[0]), list[SetAside]()",
        ),
        bug(
            "rows of a group are set aside together",
            OPERATOR,
            "as_frame(events[0]), order_of(self.node), peers_at)",
            "as_frame(events[0]), (), peers_at)",
        ),
        bug(
            "a row passes by its own instant before its group is complete",
            ZONES,
            "return build.pruned(build.named(pairs, node.schema), node.schema)",
            "return build.named(zones, node.schema)",
        ),
        bug("the first rows are one too few", BUILD, 'call("le", Attr', 'call("lt", Attr'),
        bug("the first instant of a group completes it", BUILD, "in instants), instants[0])", "in ()), instants[0])"),
    ),
)
