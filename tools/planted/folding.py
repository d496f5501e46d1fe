"""Slips in the rules of folding: each is a version that R30 to R34 say does not serve."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

REGION = "analysis/state/folding/region.py"
COMPLEMENT = "analysis/state/folding/complement.py"
CLASSES = "analysis/state/folding/classes.py"
FOLDING = "analysis/state/folding/folding.py"

GROUP = Group(
    "folding",
    ("tests/analysis/test_folding.py", "tests/properties/test_folding.py"),
    (
        bug(
            "the query's own zones settle a comparison",
            COMPLEMENT,
            'conjunction([call("not", term) if true else term, *rest, either])',
            "conjunction([term, *rest, either])",
        ),
        bug(
            "comparisons that are to be settled are known of each other",
            COMPLEMENT,
            "    if not terms or not isinstance(node, Select | Join):\n",
            "    if terms or not isinstance(node, Select | Join):\n",
        ),
        bug(
            "a rounding is loosened before it is negated",
            COMPLEMENT,
            'call("not", term) if true else term, *rest',
            'call("not", call(term.op, *(a.args[0] if isinstance(a, Call) and a.op in ("floor", "ceil") else a for a in term.args)) if isinstance(term, Call) else term) if true else term, *rest',
        ),
        bug(
            "one view that does not keep a row settles it",
            FOLDING,
            "        if not self.true.keep.row(row, p):\n",
            "        if not all(Keep(self.true.keep.stream, (view,), ()).row(row, p) for view in self.true.keep.views):\n",
        ),
        bug(
            "rows settle a tick early",
            FOLDING,
            "        if not self.true.keep.row(row, p):\n",
            "        if not self.true.keep.row({x: instant - 1 for x, instant in row.items()}, p):\n",
        ),
        bug(
            "what depends on a comparison is asked where it is true alone",
            COMPLEMENT,
            "for value in (TRUE, FALSE)]",
            "for value in (TRUE,)]",
        ),
        bug(
            "of a term only the row that comes is asked for",
            COMPLEMENT,
            "for value in (later.term, later.others))",
            "for value in (later.others, later.others))",
        ),
        bug(
            "of a term only the row that goes is asked for",
            COMPLEMENT,
            "for value in (later.term, later.others))",
            "for value in (later.term, later.term))",
        ),
        bug(
            "comparisons of NULLs above a left join are of instants",
            REGION,
            '        timed = timed and not (isinstance(node, Join) and node.kind == "left" and place == 1)\n',
            "",
        ),
        bug(
            "the complement of a left join pads",
            COMPLEMENT,
            '    if isinstance(node, Select) or node.kind == "inner":\n',
            '    if isinstance(node, Select) or node.kind in ("inner", "left"):\n',
        ),
        bug(
            "the complement of an anti-join is an anti-join",
            COMPLEMENT,
            '    if isinstance(node, Select) or node.kind == "inner":\n',
            '    if isinstance(node, Select) or node.kind in ("inner", "anti"):\n',
        ),
        bug(
            "a settled comparison counts as settled within data",
            REGION,
            '        case Call("and" | "or" | "not", args) if not reads_alone(condition, held):\n',
            "        case Call(_, args) if not reads_alone(condition, held):\n",
        ),
        bug(
            "classes do not tell truth values apart",
            FOLDING,
            "        return tuple(value is True for value in values)\n",
            "        return tuple(True for value in values)\n",
        ),
        bug(
            "classes do not tell apart what conditions read",
            CLASSES,
            '            yield Read(term, f"the condition {term_text(step.condition)}")\n',
            "            yield from ()\n",
        ),
        bug(
            "conditions on data alone tell no classes apart",
            REGION,
            "        case _:\n            yield from own_parts(condition, held)\n",
            "        case _ if not reads_alone(condition, held):\n            yield from own_parts(condition, held)\n        case _:\n            pass\n",
        ),
        bug(
            "group keys tell no classes apart",
            CLASSES,
            '        reads += _of_attributes(sink.held, sink.node.keys, "the group key")\n',
            "",
        ),
        bug(
            "a difference reads nothing",
            CLASSES,
            "    if isinstance(step.node, Difference):\n",
            "    if False:\n",
        ),
        bug(
            "an argument of several occurrences is payload of one",
            CLASSES,
            "    return aggregate.entry.merges and reads_alone(term, held)\n",
            "    return aggregate.entry.merges and any(own_parts(term, held))\n",
        ),
        bug(
            "aggregates that do not merge have payload",
            CLASSES,
            "    return aggregate.entry.merges and reads_alone(term, held)\n",
            "    return reads_alone(term, held)\n",
        ),
        bug(
            "what is mixed is forgotten",
            REGION,
            "        case Attr(name) if name in held:\n            yield from held[name].terms\n",
            "",
        ),
        bug(
            "the best row stands for a class that is counted",
            CLASSES,
            "    if not found.existence:\n        return Classes(_reads(found, settled), _payload(found))\n",
            "    if not found.existence and not any(_dominated(found, x, settled) for x in schema.temporal):\n        return Classes(_reads(found, settled), _payload(found))\n",
        ),
        bug(
            "one of two directions decides which row is best",
            CLASSES,
            "    best = wanted.pop() if len(wanted) == 1 else None\n",
            "    best = next(iter(wanted), None)\n",
        ),
        bug(
            "the best row stands for others whose instant is read",
            CLASSES,
            "    return None if any(x in attributes_of(one.term) for one in read) else Classes(read, (), best)\n",
            "    return Classes(tuple(one for one in read if x not in attributes_of(one.term)), (), best)\n",
        ),
        bug(
            "the best row is the same on either side of an anti-join",
            CLASSES,
            "            return best if positive != reversing else best.reversed\n",
            "            return best if positive else best.reversed\n",
        ),
        bug(
            "the best row is the same under a negation",
            CLASSES,
            "            return best if positive != reversing else best.reversed\n",
            "            return best if not reversing else best.reversed\n",
        ),
        bug(
            "the best row passes the left of a left join",
            CLASSES,
            '    if isinstance(step.node, Join) and step.node.kind == "left" and step.place == 0:\n',
            "    if False:\n",
        ),
        bug(
            "the best row is the worst",
            CLASSES,
            '    "<=": Best.GREATEST,\n    "<": Best.GREATEST,\n    ">=": Best.LEAST,\n',
            '    "<=": Best.LEAST,\n    "<": Best.GREATEST,\n    ">=": Best.LEAST,\n',
        ),
        bug(
            "a distinct is passed through",
            REGION,
            "        case Group() | Distinct():\n            return True\n",
            "        case Group():\n            return True\n        case Distinct():\n            return False\n",
        ),
        bug(
            "the horizon is the least of what has to be settled",
            FOLDING,
            "    longest = max(horizons, default=-INF)\n",
            "    longest = min(horizons, default=-INF)\n",
        ),
        bug(
            "a comparison that is never settled is waited for",
            FOLDING,
            "        return isinstance(one.true.bound, Bounded)\n    return bool(one.bounds)\n",
            "        return not isinstance(one.false.bound, Static)\n    return True\n",
        ),
    ),
)
