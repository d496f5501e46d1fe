"""The slips in the rules of the analysis that must be noticed."""

from __future__ import annotations

from tools.planted.bugs import Bug, Group, Patch, bug

PROPAGATION = "analysis/progress/propagation.py"
KEEP = "analysis/state/keep.py"
THRESHOLDS = "analysis/state/thresholds.py"
VIEWS = "analysis/federation/views.py"
PRUNING = "analysis/zones/pruning.py"
NORMAL_FORM = "analysis/zones/normal_form.py"
INSTANTS = "analysis/zones/instants.py"
FEDERATION = "analysis/federation/federation.py"
NODES = "algebra/nodes.py"

GROUP = Group(
    "required",
    ("tests/properties/test_tight.py", "tests/properties/test_rules.py", "tests/properties/test_embedded.py"),
    (
        bug(
            "sign in f",
            PROPAGATION,
            "return -INF if d == INF else b - d",
            "return -INF if d == INF else b + d",
            required=True,
        ),
        bug(
            "keep off by one",
            VIEWS,
            "return self._bounds[self._column[x]][self._attribute[a]]",
            "return self._bounds[self._column[x]][self._attribute[a]] - 1",
            required=True,
        ),
        bug(
            "flag-blind pruning",
            PRUNING,
            "    zones = prune_equal_flags(zones)\n    by_flags",
            "    every_row = dict.fromkeys(row for zone in zones for row in zone.layout.rows if is_copy(row))\n"
            '    blind: list[Variable] = [*(("a", name) for name in attributes), *every_row]\n'
            "    zones = [zones[k] for k in maximal([zone.view(blind) for zone in zones])]\n    by_flags",
            required=True,
        ),
        bug(
            "< a tick off",
            NORMAL_FORM,
            'case "<":\n            return _at_most(left, right, -1, source)',
            'case "<":\n            return _at_most(left, right, -2, source)',
            required=True,
        ),
        bug(
            "roundings of any phase are one",
            INSTANTS,
            "        rounding = Rounding(row, by % unit, unit)\n",
            "        rounding = Rounding(row, 0, unit)\n",
            required=True,
        ),
        bug(
            "H of a difference is its left side's",
            FEDERATION,
            "        pairs = self.joined(first, second, both, equal_instants((name, primed[name]) for name in same))\n",
            "        pairs = self.joined(first, second, both, equal_instants((name, primed[name]) for name in same))[:0]\n",
            required=True,
        ),
        Bug(
            "self-joins share hidden variables",
            (
                Patch(
                    FEDERATION,
                    "                pairs.append(left.product(right, layouts[key]))\n",
                    "                pair = left.product(right, layouts[key])\n"
                    "                matrix = pair.matrix.copy()\n"
                    "                for a, one in enumerate(pair.layout.rows):\n"
                    "                    for c, other in enumerate(pair.layout.rows):\n"
                    "                        if is_copy(one) and is_copy(other) and one[2] == other[2]:\n"
                    "                            if self.occurrences[one[1]].name == self.occurrences[other[1]].name:\n"
                    "                                matrix[a, c] = min(int(matrix[a, c]), 0)\n"
                    "                closed = close(matrix)\n"
                    "                if closed is not None:\n"
                    "                    pairs.append(replace(pair, matrix=closed))\n",
                ),
                Patch(
                    FEDERATION,
                    "from tidegate.analysis.zones.zone import Conflict, Copy, Hidden, Layout, Zone, is_copy",
                    "from tidegate.analysis.zones.zone import Conflict, Copy, Hidden, Layout, Zone, close, is_copy",
                ),
            ),
            required=True,
        ),
        bug(
            "relevance swapped",
            VIEWS,
            "return self._bounds[self._attribute[a]][self._column[x]]",
            "return self._bounds[self._column[x]][self._attribute[a]]",
            required=True,
        ),
        bug(
            "segment min for max",
            THRESHOLDS,
            "if x in bounds and bounds[x][1] <= limit:",
            "if x in bounds and bounds[x][0] <= limit:",
            required=True,
        ),
        Bug(
            "aggregate over hidden time",
            (
                Patch(
                    NODES,
                    "    return Attribute(aggregate.name, aggregate_type(aggregate, argument, by), nullable=True, temporal=False)",
                    "    hidden = isinstance(aggregate.argument, Attr) and schema[aggregate.argument.name].temporal\n"
                    "    hidden = hidden and aggregate.function in (Function.MIN, Function.MAX)\n"
                    "    type_ = aggregate_type(aggregate, argument, by)\n"
                    "    return Attribute(aggregate.name, type_, nullable=not hidden, temporal=hidden)",
                ),
                Patch(
                    FEDERATION,
                    "                case Project(input_, _) | Group(input_, _, _):\n",
                    "                case Group(input_, _, aggregates):\n"
                    "                    zones = self.build(input_)\n"
                    "                    for made in (a for a in aggregates if node.schema[a.name].temporal):\n"
                    "                        zones = _relaid(\n"
                    "                            zones,\n"
                    "                            lambda old, m=made: Layout(\n"
                    "                                old.rows, {**old.attributes, m.name: old.attributes[m.argument.name]}\n"
                    "                            ),\n"
                    "                        )\n"
                    "                    return self.pruned(self.named(zones, node.schema), node.schema)\n"
                    "                case Project(input_, _):\n",
                ),
            ),
            required=True,
        ),
    ),
)
