"""Slips in the rules of the analysis."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

PROPAGATION = "analysis/progress/propagation.py"
PASS = "analysis/progress/pass_.py"
KEEP = "analysis/state/keep.py"
RELEVANCE = "analysis/state/relevance.py"
THRESHOLDS = "analysis/state/thresholds.py"
VIEWS = "analysis/federation/views.py"
PRUNING = "analysis/zones/pruning.py"
NORMAL_FORM = "analysis/zones/normal_form.py"
INSTANTS = "analysis/zones/instants.py"
ZONES = "analysis/zones/zone.py"
EXPANSION = "analysis/zones/expansion.py"
FEDERATION = "analysis/federation/federation.py"
BOUNDS = "analysis/state/bounds.py"
PIPELINE = "analysis/pipeline.py"
VALIDITY = "analysis/validity/validity.py"
DERIVED = "analysis/derived.py"

GROUP = Group(
    "analysis",
    ("tests/properties/test_tight.py", "tests/properties/test_rules.py", "tests/properties/test_embedded.py"),
    (
        bug(
            "f takes the least of an occurrence's attributes",
            PROPAGATION,
            "min(\n            (max(difference(",
            "min(\n            (min(difference(",
        ),
        bug(
            "f waits for ignored occurrences",
            PROPAGATION,
            "speaking = [zone for zone in federation.zones if i not in zone.ignored]",
            "speaking = list(federation.zones)",
        ),
        bug(
            "f takes distances the other way",
            PROPAGATION,
            'zone.distance(("a", attribute), ("x", i, y))',
            'zone.distance(("x", i, y), ("a", attribute))',
        ),
        bug(
            "a finished input still holds back",
            PROPAGATION,
            "    if b in (INF, -INF):\n        return b\n",
            "    if b == -INF:\n        return b\n",
        ),
        bug(
            "the weaker clause wins",
            PROPAGATION,
            "return all(d >= distances[y] for y, d in first.distances)",
            "return all(d <= distances[y] for y, d in first.distances)",
        ),
        bug(
            "clauses of other streams undercut",
            PROPAGATION,
            "    if first.stream != second.stream:\n        return False\n    distances = dict(second.distances)\n    return all(d >= distances[y] for y, d in first.distances)",
            "    distances = dict(second.distances)\n    return all(d >= distances.get(y, INF) for y, d in first.distances)",
        ),
        bug(
            "pass stops one tick early",
            PASS,
            'return call("le", Attr(attribute.name), Lit(int(limit), attribute.type))',
            'return call("lt", Attr(attribute.name), Lit(int(limit), attribute.type))',
        ),
        bug(
            "pass again what passed by another attribute",
            PASS,
            "else conjunction([reached, *beyond])",
            "else conjunction([reached, disjunction(beyond)])",
        ),
        bug(
            "pass only when all attributes are reached",
            PASS,
            "reached = disjunction([at_most(attributes[a], limit) for a, limit in new.items()])",
            "reached = conjunction([at_most(attributes[a], limit) for a, limit in new.items()])",
        ),
        bug(
            "pass again what lies at the old progress",
            PASS,
            'return call("gt", term, Lit(int(limit), type_))',
            'return call("ge", term, Lit(int(limit), type_))',
        ),
        bug(
            "keep ignores what relates a row's own instants",
            KEEP,
            "return any(fits(view, row) and still_to_pass(view, row, p) for view in self.views)",
            "return any(still_to_pass(view, row, p) for view in self.views)",
        ),
        bug(
            "keep asks all views",
            KEEP,
            "return any(fits(view, row) and still_to_pass(view, row, p) for view in self.views)",
            "return all(fits(view, row) and still_to_pass(view, row, p) for view in self.views)",
        ),
        bug("keep condition has a sign wrong", KEEP, "p.get(a, -INF) - d)", "p.get(a, -INF) + d)"),
        bug(
            "keep condition a tick off between columns",
            KEEP,
            'return call("le", Attr(y), Attr(x)',
            'return call("lt", Attr(y), Attr(x)',
        ),
        bug(
            "keep segment relates wrong ends",
            THRESHOLDS,
            "bounds[y][0] - bounds[x][1] > c",
            "bounds[y][1] - bounds[x][0] > c",
        ),
        bug(
            "views of one zone only",
            VIEWS,
            "speaking = [zone for zone in federation.zones if i not in zone.ignored]",
            "speaking = [zone for zone in federation.zones if i not in zone.ignored][:1]",
        ),
        bug(
            "views of ignored zones too",
            VIEWS,
            "speaking = [zone for zone in federation.zones if i not in zone.ignored]",
            "speaking = list(federation.zones)",
        ),
        bug(
            "view within swapped",
            VIEWS,
            "return self._bounds[self._column[x]][self._column[y]]",
            "return self._bounds[self._column[y]][self._column[x]]",
        ),
        bug(
            "view across swapped",
            VIEWS,
            "return self._bounds[self._attribute[a]][self._attribute[b]]",
            "return self._bounds[self._attribute[b]][self._attribute[a]]",
        ),
        bug(
            "declared relations assumed to be stronger",
            VIEWS,
            "if declared is None or declared[w, v] > c",
            "if declared is None or declared[w, v] > c + 1",
        ),
        bug(
            "columns left out the wrong way round",
            VIEWS,
            "if towards else view.within(y, x)) + bounds[y]",
            "if not towards else view.within(y, x)) + bounds[y]",
        ),
        bug(
            "relevance keeps what only just passed",
            RELEVANCE,
            "and reached + view.across(a, k) > old.get(k, -INF)",
            "and reached + view.across(a, k) >= old.get(k, -INF)",
        ),
        bug(
            "relevance condition has a sign wrong",
            RELEVANCE,
            "Lit(int(limit) + d, self.stream.schema[x].type)",
            "Lit(int(limit) - d, self.stream.schema[x].type)",
        ),
        bug("relevance a tick early", RELEVANCE, 'conjunction([call("le", Attr(x)', 'conjunction([call("lt", Attr(x)'),
        bug(
            "relevance segment max for min",
            THRESHOLDS,
            "bounds[x][0] <= limit for x, limit in entry",
            "bounds[x][1] <= limit for x, limit in entry",
        ),
        bug(
            "a zone is pruned by one that is larger somewhere",
            PRUNING,
            "(varying[candidates] >= values).all(axis=1).any()",
            "(varying[candidates] >= values).any(axis=1).any()",
        ),
        bug(
            "floor a tick off",
            INSTANTS,
            "Bound(base, name, row.unit - 1 - row.offset, source)",
            "Bound(base, name, row.unit - 2 - row.offset, source)",
        ),
        bug(
            "ceil taken for its argument",
            INSTANTS,
            "return self.floor(moved(self.read(inner, source), unit - 1), unit, source)",
            "return self.read(inner, source)",
        ),
        bug(
            "shift has a sign wrong",
            NORMAL_FORM,
            "return _at_most(term, right, c - by, source)",
            "return _at_most(term, right, c + by, source)",
        ),
        bug(
            "max like min on the left",
            NORMAL_FORM,
            "return conjoin([_at_most(term, right, c, source) for term in terms])",
            "return disjoin([_at_most(term, right, c, source) for term in terms])",
        ),
        bug(
            "min like max on the right",
            NORMAL_FORM,
            "return conjoin([_at_most(left, term, c, source) for term in terms])",
            "return disjoin([_at_most(left, term, c, source) for term in terms])",
        ),
        bug(
            "max on the right is its first",
            NORMAL_FORM,
            "return disjoin([_at_most(left, term, c, source) for term in terms])",
            "return _at_most(left, terms[0], c, source)",
        ),
        bug(
            "unequal means earlier",
            NORMAL_FORM,
            "return disjoin((_at_most(left, right, -1, source), _at_most(right, left, -1, source)))",
            "return _at_most(left, right, -1, source)",
        ),
        bug("not < is >", NORMAL_FORM, '{"<": ">=",', '{"<": ">",'),
        bug(
            "opaque conditions are false under negation",
            NORMAL_FORM,
            "        case Opaque():\n            return TOP",
            "        case Opaque():\n            return TOP if positive else BOTTOM",
        ),
        bug(
            "negation does not turn and into or",
            NORMAL_FORM,
            "return conjoin(normal) if positive else disjoin(normal)",
            "return conjoin(normal)",
        ),
        bug(
            "equal bounds are a contradiction",
            ZONES,
            "if matrix[v, w] + bound.c < 0:",
            "if matrix[v, w] + bound.c <= 0:",
        ),
        bug(
            "closure forgets paths",
            ZONES,
            "    matrix[block] = np.minimum(matrix[block], sums)\n",
            "    matrix[w, v] = c\n",
        ),
        bug(
            "an alternative is entailed by any bound",
            ZONES,
            "return bool(self.matrix[attributes[bound.w], attributes[bound.v]] <= bound.c)",
            "return bool(self.matrix[attributes[bound.w], attributes[bound.v]] < NONE)",
        ),
        bug(
            "only the first alternative",
            EXPANSION,
            "limit, declared_by) for part in parts)",
            "limit, declared_by) for part in parts[:1])",
        ),
        bug(
            "declared relations of streams are not used",
            FEDERATION,
            "return self.constrain([Zone.free(layout)], relations, declared_by=stream.name)",
            "return [Zone.free(layout)]",
        ),
        bug(
            "the right side of an anti-join is never awaited",
            FEDERATION,
            "                alone = [zone.ignoring(right) for zone in first]\n",
            "                alone, pairs = [zone.ignoring(right) for zone in first], []\n",
        ),
        bug(
            "the right side of an anti-join always matters",
            FEDERATION,
            "                alone = [zone.ignoring(right) for zone in first]\n",
            "                alone = [z.product(s, Layout(z.layout.rows + s.layout.rows, z.layout.attributes)) for z in first for s in second]\n",
        ),
        bug(
            "a semi-join waits for its left side only",
            FEDERATION,
            "return self.pruned(self.named(pairs, node.schema), node.schema)",
            "return self.pruned(self.named([z.ignoring(right) for z in pairs], node.schema), node.schema)",
        ),
        bug(
            "a union waits for the other sides",
            FEDERATION,
            "zone.ignoring(i for i in everything if i not in places)",
            "zone.ignoring(i for i in everything if i in places)",
        ),
        bug(
            "a new attribute lies before its term",
            INSTANTS,
            "                    Bound(name, base, row.offset, source),\n",
            "                    Bound(name, base, row.offset - 1, source),\n",
        ),
        bug("horizon of the best view", BOUNDS, "horizon = max(horizon, min(reach))", "horizon = min(reach)"),
        bug(
            "horizon a tick short",
            BOUNDS,
            "return self.horizon + skew + (lag if self.lagging else 0)",
            "return self.horizon - 2 + skew + (lag if self.lagging else 0)",
        ),
        bug(
            "promised where some query progresses",
            PIPELINE,
            "if all(draft.functions[a].is_finite for draft in moving)",
            "if any(draft.functions[a].is_finite for draft in moving)",
        ),
        bug(
            "declared relations are not negated",
            VALIDITY,
            "constrained([c], formula, MAX_ZONES, positive=False)",
            "constrained([c], formula, MAX_ZONES, positive=True)",
        ),
        bug("derived relations a tick too strong", DERIVED, 'call("le", left if c >= 0', 'call("lt", left if c >= 0'),
    ),
)
