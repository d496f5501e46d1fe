"""The bugs that `planted_bugs.py` plants: each a plausible slip in a rule of the analysis or in how an engine obeys it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patch:
    """In one file, a text that occurs exactly once and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted bug; `required` bugs are those that concern the rules of the analysis most.

    A bug that `loops` is one that keeps the tests from ending: only of such a bug is a timeout a kill.
    """

    name: str
    patches: tuple[Patch, ...]
    required: bool = False
    loops: bool = False


def bug(name: str, file: str, old: str, new: str, *, required: bool = False, loops: bool = False) -> Bug:
    return Bug(name, (Patch(file, old, new),), required, loops)


PROPAGATION = "analysis/propagation.py"
PASS = "analysis/pass_.py"
KEEP = "analysis/keep.py"
RELEVANCE = "analysis/relevance.py"
VIEWS = "analysis/views.py"
PRUNING = "analysis/pruning.py"
NORMAL_FORM = "analysis/normal_form.py"
ZONES = "analysis/zones.py"
EXPANSION = "analysis/expansion.py"
FEDERATION = "analysis/federation.py"
BOUNDS = "analysis/bounds.py"
PIPELINE = "analysis/pipeline.py"
RECURSION = "analysis/recursion.py"
FACTS = "analysis/facts.py"
VALIDITY = "analysis/validity.py"
DERIVED = "analysis/derived.py"
NODES = "algebra/nodes.py"
RUNNER = "runtime/runner.py"
INTAKE = "runtime/intake.py"
KEYS = "runtime/keys.py"
WHY = "runtime/why.py"
PROGRESS = "runtime/progress.py"
STEPS = "runtime/plan/steps.py"
LOWER = "runtime/plan/lower.py"
JOINS = "runtime/embedded/joins.py"
AGGREGATES = "runtime/embedded/aggregates.py"
EXECUTOR = "runtime/embedded/executor.py"
REWRITES = "algebra/rewrites/"
COMMON_PARTS = "algebra/rewrites/common.py"
COMMON_PLAN = "runtime/plan/common.py"

REQUIRED = (
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
        "return self._bound(self.columns.index(x), self._promised(a))",
        "return self._bound(self.columns.index(x), self._promised(a)) - 1",
        required=True,
    ),
    bug(
        "flag-blind pruning",
        PRUNING,
        "    zones = prune_equal_flags(zones)\n    by_flags",
        '    every_row = dict.fromkeys(row for zone in zones for row in zone.layout.rows if row[0] == "x")\n'
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
        "floor before negation",
        NORMAL_FORM,
        "            return _comparison(left, op if positive else _NEGATED[op], right, source)",
        "            def negated(n: Normal) -> Normal:\n"
        "                if isinstance(n, Bound):\n"
        "                    return _bound(n.w, n.v, -n.c - 1, n.source)\n"
        "                parts = [negated(part) for part in n.parts]\n"
        "                return disjoin(parts) if isinstance(n, All) else conjoin(parts)\n\n"
        "            found = _comparison(left, op, right, source)\n"
        "            return found if positive else negated(found)",
        required=True,
    ),
    bug(
        "H of a difference is its left side's",
        FEDERATION,
        "        pairs = self.joined(first, second, both, (conjoin(equal),))\n",
        "        pairs = self.joined(first, second, both, (conjoin(equal),))[:0]\n",
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
                '                        if one[0] == other[0] == "x" and one[2] == other[2]:\n'
                "                            if self.occurrences[one[1]].name == self.occurrences[other[1]].name:\n"
                "                                matrix[a, c] = min(int(matrix[a, c]), 0)\n"
                "                closed = close(matrix)\n"
                "                if closed is not None:\n"
                "                    pairs.append(replace(pair, matrix=closed))\n",
            ),
            Patch(
                FEDERATION,
                "from tidegate.analysis.zones import Conflict, Hidden, Layout, Zone",
                "from tidegate.analysis.zones import Conflict, Hidden, Layout, Zone, close",
            ),
        ),
        required=True,
    ),
    bug(
        "relevance swapped",
        VIEWS,
        "return self._bound(self._promised(a), self.columns.index(x))",
        "return self._bound(self.columns.index(x), self._promised(a))",
        required=True,
    ),
    bug(
        "collection before passing",
        RUNNER,
        "            jobs += self._job(query, relevant(query, offered(query, self.segments), old, new), old, new)\n            self.progress.queries[query.name] = new\n",
        "            self.progress.queries[query.name] = new\n            self._collect(batch)\n"
        "            jobs += self._job(query, relevant(query, offered(query, self.segments), old, new), old, new)\n",
        required=True,
    ),
    bug(
        "segment min for max",
        KEEP,
        "min((greatest(bounds, x) + view.ahead(x, a) for x in view.columns), default=INF)",
        "min((least(bounds, x) + view.ahead(x, a) for x in view.columns), default=INF)",
        required=True,
    ),
    bug(
        "late rule < for <=",
        INTAKE,
        "else pl.col(name) <= b",
        "else pl.col(name) < b",
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
)

ANALYSIS = (
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
        "return all(d >= distances[y] for y, d in one.distances)",
        "return all(d <= distances[y] for y, d in one.distances)",
    ),
    bug(
        "clauses of other streams undercut",
        PROPAGATION,
        "    if one.stream != other.stream:\n        return False\n    distances = dict(other.distances)\n    return all(d >= distances[y] for y, d in one.distances)",
        "    distances = dict(other.distances)\n    return all(d >= distances.get(y, INF) for y, d in one.distances)",
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
        KEEP,
        "least(bounds, y) - greatest(bounds, x) <= view.within(x, y)",
        "greatest(bounds, y) - least(bounds, x) <= view.within(x, y)",
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
        "return self._bound(self.columns.index(x), self.columns.index(y))",
        "return self._bound(self.columns.index(y), self.columns.index(x))",
    ),
    bug(
        "view across swapped",
        VIEWS,
        "return self._bound(self._promised(a), self._promised(b))",
        "return self._bound(self._promised(b), self._promised(a))",
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
        RELEVANCE,
        "all(least(bounds, x) - view.behind(a, x)",
        "all(bounds[x][1] - view.behind(a, x)",
    ),
    bug(
        "a zone is pruned by one that is larger somewhere",
        PRUNING,
        "(varying[candidates] >= values).all(axis=1).any()",
        "(varying[candidates] >= values).any(axis=1).any()",
    ),
    bug(
        "floor a tick off",
        NORMAL_FORM,
        "return _at_most(term, right, c + unit - 1, source)",
        "return _at_most(term, right, c + unit - 2, source)",
    ),
    bug(
        "ceil taken for its argument",
        NORMAL_FORM,
        "return _at_most(left, term, c + unit - 1, source)",
        "return _at_most(left, term, c, source)",
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
    bug("equal bounds are a contradiction", ZONES, "if matrix[v, w] + bound.c < 0:", "if matrix[v, w] + bound.c <= 0:"),
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
        "                    for part in parts:\n",
        "                    for part in parts[:1]:\n",
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
        '            case "anti" | "left":\n                alone = [zone.ignoring(right) for zone in first]\n',
        '            case "anti" | "left":\n                alone, pairs = [zone.ignoring(right) for zone in first], []\n',
    ),
    bug(
        "the right side of an anti-join always matters",
        FEDERATION,
        '            case "anti" | "left":\n                alone = [zone.ignoring(right) for zone in first]\n',
        '            case "anti" | "left":\n                alone = [z.product(s, Layout(z.layout.rows + s.layout.rows, z.layout.attributes)) for z in first for s in second]\n',
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
        "zone.ignoring(i for i in everything if i not in own)",
        "zone.ignoring(i for i in everything if i in own)",
    ),
    bug(
        "a new attribute lies before its term",
        FEDERATION,
        'normal_form(Compare(Var(name), "=", temporal, term))',
        'normal_form(Compare(Var(name), "<", temporal, term))',
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
        "if all(one.functions[a].is_finite for one in moving)",
        "if any(one.functions[a].is_finite for one in moving)",
    ),
    bug(
        "declared relations are not negated",
        VALIDITY,
        "normal_form(temporal_formula(relation, schema), positive=False)",
        "normal_form(temporal_formula(relation, schema), positive=True)",
    ),
    bug("derived relations a tick too strong", DERIVED, 'call("le", left if c >= 0', 'call("lt", left if c >= 0'),
)

RUNTIME = (
    bug(
        "results progress with the fastest query",
        PROGRESS,
        "b[key] = min(b.get(key, INF), self.queries[query.name][a])",
        "b[key] = max(b.get(key, -INF), self.queries[query.name][a])",
    ),
    bug(
        "progress can go back",
        PROGRESS,
        "self.inputs[stream, attribute] = max(known, value)",
        "self.inputs[stream, attribute] = value if known != value else known",
    ),
    bug(
        "a shared buffer keeps what all readers need",
        STEPS,
        "return disjunction([leaf.keep(progress[query.name])",
        "return conjunction([leaf.keep(progress[query.name])",
    ),
    bug(
        "a shared segment goes with its first reader",
        STEPS,
        "return any(leaf.keeps_segment(bounds, progress[query.name])",
        "return all(leaf.keeps_segment(bounds, progress[query.name])",
    ),
    bug(
        "partial aggregates a tick late",
        STEPS,
        '_compare("le", c, value, schema[c].type)',
        '_compare("lt", c, value, schema[c].type)',
    ),
    bug(
        "partial aggregates go with their earliest",
        STEPS,
        "return all(bounds[column][1] > b for column, b in self._by_key(p))",
        "return all(bounds[column][0] > b for column, b in self._by_key(p))",
    ),
    bug(
        "segments go with their earliest row",
        RUNNER,
        "self._needed(buffer, s, _whole)",
        "self._needed(buffer, s, _earliest)",
    ),
    bug(
        "rows are stored after the increments",
        RUNNER,
        '                self._advance(work, ingested, batch.intent.clock)\n            with _timed("increments", seconds):\n                increments = self._increments(batch)\n',
        '                pass\n            with _timed("increments", seconds):\n                increments = self._increments(batch)\n                self._advance(work, ingested, batch.intent.clock)\n',
    ),
    bug(
        "a restart forgets the progress of queries",
        PROGRESS,
        "                self.queries[name][attribute] = value",
        "                self.queries[name][attribute] = -INF",
    ),
    bug(
        "late by all attributes instead of any",
        INTAKE,
        "        for name, b in intake.progress.items()\n        if b != -INF\n    ]\n",
        "        for name, b in intake.progress.items()\n        if b != -INF and name == min(intake.progress)\n    ]\n",
    ),
    bug(
        "distinct counts merge as sums",
        LOWER,
        "MERGEABLE = frozenset(Function) - {Function.COUNT_DISTINCT}",
        "MERGEABLE = frozenset(Function)",
    ),
    bug(
        "partials although a promise is no key",
        LOWER,
        "    if any(a not in made for a in facts.propagation):\n        return None\n",
        "",
    ),
    bug("strict ranges are not", JOINS, '"right" if bound.strict else "left"', '"left"'),
    bug("NULL conditions hold in joins", JOINS, "condition.fill_null(value=False)", "condition.fill_null(value=True)"),
    bug(
        "left joins pad by the unfiltered condition",
        JOINS,
        "            kept = eligible[one]\n            matched[one[kept]] = True\n",
        "            kept = eligible[one]\n            matched[one] = True\n",
    ),
    bug("latest takes the earliest", AGGREGATES, "descending=[True, False]", "descending=[False, False]"),
    bug(
        "merged partials lose a part",
        EXECUTOR,
        "return pl.concat([self._load(segment) for segment in segments]).lazy()",
        "return self._load(segments[-1]).lazy()",
    ),
    bug(
        "selections go through the right of anti-joins",
        REWRITES + "select_through_join.py",
        'if isinstance(both, Product) or both.kind == "inner":',
        'if isinstance(both, Product) or both.kind in ("inner", "left"):',
    ),
    bug(
        "anti-join conditions filter the left",
        REWRITES + "select_in_join.py",
        'if kind in ("inner", "semi"):',
        'if kind in ("inner", "semi", "anti"):',
    ),
)

COMMON = (
    bug(
        "joins do not read their condition",
        COMMON_PARTS,
        "wanted = needed | attributes_of(condition)",
        "wanted = needed",
    ),
    bug(
        "selections above a common part do not count",
        COMMON_PARTS,
        "        return node.condition != TRUE\n    return selected and isinstance(node, Project | Rename | Imbed)",
        "        return False\n    return False",
    ),
    bug(
        "a common part keeps what its last use reads",
        REWRITES + "__init__.py",
        "needed[scan] = needed.get(scan, frozenset()) | names",
        "needed[scan] = names",
    ),
    bug(
        "a part is common whatever rows of it are relevant",
        COMMON_PLAN,
        "return _identity(part, self.query.leaves), self.relevant[part.first : part.first + part.count]",
        "return _identity(part, self.query.leaves)",
    ),
    bug(
        "a part is common whatever buffers it reads",
        COMMON_PLAN,
        "return part.node, tuple((leaf.buffer.id if leaf.buffer else leaf.static, leaf.columns) for leaf in read)",
        "return part.node, len(read)",
    ),
)

INPUT = (
    bug(
        "exactly the guard ahead is ahead",
        INTAKE,
        "tests.append((AHEAD, name, pl.col(name) > limit))",
        "tests.append((AHEAD, name, pl.col(name) >= limit))",
    ),
    bug(
        "progress that is ahead counts",
        INTAKE,
        "            said = pc.if_else(beyond, pa.scalar(None, said.type), said)\n",
        "",
    ),
    bug(
        "rows whose progress is ahead are accepted",
        INTAKE,
        "tests.append((AHEAD, column, (pl.col(column) > limit).fill_null(False)))",
        "continue",
    ),
    bug(
        "punctuation is counted as a malformed row as well",
        INTAKE,
        '            if r["position"] not in said.alone\n',
        "",
    ),
    bug("a row without values is punctuation", INTAKE, "    speaks = np.zeros(", "    speaks = np.ones("),
    bug(
        "duplicates are conflicts",
        KEYS,
        "(pl.col(others[name])) for name in told))",
        "(pl.col(others[name])) for name in told[:0]))",
    ),
    bug(
        "NULL in a key equals nothing",
        KEYS,
        'compared = numbered.join(accepted.rename(others), on=key, how="left", nulls_equal=True,',
        'compared = numbered.join(accepted.rename(others), on=key, how="left", nulls_equal=False,',
    ),
    bug(
        "keys are forgotten after each batch",
        RUNNER,
        "remembered = tuple(segment for buffer in own for segment in self.segments[buffer.id])",
        "remembered = ()",
    ),
    bug(
        "keys are forgotten an instant too early",
        KEYS,
        "return pass_window([(name, b[name]) for name in self.instants], None, self.buffer.schema)",
        "return pass_window([(name, b[name] + 60_000_000) for name in self.instants], None, self.buffer.schema)",
    ),
    bug(
        "segments of keys go by their least instant",
        KEYS,
        "return all(bounds[name][1] > b[name] for name in self.instants)",
        "return all(bounds[name][0] > b[name] for name in self.instants)",
    ),
    bug(
        "rejected rows are remembered",
        INTAKE,
        "done.seen = pl.concat([done.seen, fine.select(done.seen.columns)])",
        "done.seen = pl.concat([done.seen, rows.select(done.seen.columns)])",
    ),
    bug(
        "why: a row needs one tick less",
        WHY,
        "Wait(attribute, clause.stream, y, value + d,",
        "Wait(attribute, clause.stream, y, value + d - 1,",
    ),
    bug(
        "why: distances count backwards",
        WHY,
        "Wait(attribute, clause.stream, y, value + d,",
        "Wait(attribute, clause.stream, y, value - d,",
    ),
    bug("why: any clause holds", WHY, "return min(function.clauses, key=", "return max(function.clauses, key="),
    bug(
        "why: without an input, its other clauses still count",
        WHY,
        "for other in function.clauses if other.stream != clause.stream]",
        "for other in function.clauses if other is not clause]",
    ),
    bug(
        "why: one case that excludes a row is enough",
        WHY,
        "            if not pairs:\n                return ()\n",
        "            if not pairs:\n                continue\n",
    ),
)

RECURSIVE = (
    bug(
        "all candidates pass at once, by the rules",
        "tests/properties/drive.py",
        "limit = min(r for _, r, _ in candidates) + rank.step",
        "limit = max(r for _, r, _ in candidates) + rank.step",
        required=True,
    ),
    bug(
        "all candidates pass at once, embedded",
        EXECUTOR,
        "limit = min(least) + rank.step",
        "limit = min(least) + 10**12",
        required=True,
    ),
    bug(
        "a step too long",
        RECURSION,
        "scale, step = gain.denominator, gain.numerator",
        "scale, step = gain.denominator, gain.numerator + 1",
        required=True,
    ),
    bug(
        "the fastest way round is the step",
        RECURSION,
        "return max(means, default=Fraction(-1))",
        "return min(means, default=Fraction(-1))",
        required=True,
    ),
    bug(
        "ticks are not scaled",
        RECURSION,
        "scale, step = gain.denominator, gain.numerator",
        "scale, step = 1, -(-gain.numerator // gain.denominator)",
        required=True,
    ),
    bug(
        "the sign of potentials",
        FACTS,
        "return min(self.scale * row[a] - potential for",
        "return min(self.scale * row[a] + potential for",
        required=True,
    ),
    bug(
        "the sign of potentials in conditions",
        FACTS,
        "(limit + potential - 1) // self.scale",
        "(limit - potential - 1) // self.scale",
        required=True,
    ),
    bug(
        "no potentials",
        RECURSION,
        "found[edge.target] = min(found[edge.target], limit)",
        "found[edge.target] = 0",
        required=True,
    ),
    bug(
        "the rank of the latest instant",
        FACTS,
        "return min(self.scale * row[a] - potential for",
        "return max(self.scale * row[a] - potential for",
        required=True,
    ),
    bug(
        "the limit is within the stratum",
        FACTS,
        "(limit + potential - 1) // self.scale",
        "(limit + potential) // self.scale",
        required=True,
    ),
    bug(
        "progress rises before the loop, and with it the doors",
        RUNNER,
        "        rank, limit, idle = recursion.rank, None, 0\n",
        "        rank, limit, idle = recursion.rank, None, 0\n        self.progress.queries |= new\n",
        required=True,
    ),
    bug(
        "garbage is collected within the loop",
        RUNNER,
        "            limit = stratum.limit\n",
        "            limit = stratum.limit\n            self.progress.queries |= new\n            self._collect(batch)\n",
        required=True,
    ),
    bug(
        "progress of a component starts from below",
        RECURSION,
        "dict.fromkeys(own, INF) for name, own",
        "dict.fromkeys(own, -INF) for name, own",
        required=True,
    ),
    bug(
        "former progress enters the fixpoint",
        RECURSION,
        "                known[key] = INF\n",
        "                known.setdefault(key, INF)\n",
        required=True,
    ),
    bug(
        "later strata do not read what earlier ones found",
        RUNNER,
        "                added = offered(query, fresh)\n",
        "                added = offered(query, {})\n",
        required=True,
    ),
)

SHARDING = (
    bug(
        "shards by the padded side of an outer join",
        "runtime/plan/sharding.py",
        'if kind == "inner":\n                    found[other]',
        'if kind != "semi":\n                    found[other]',
    ),
    bug(
        "shards of a grouping by what it does not group by",
        "runtime/plan/sharding.py",
        "return _kept(_keys(input_, leaves, first), keys)",
        "return _keys(input_, leaves, first) or {}",
    ),
    bug(
        "every shard has the static side of a union",
        "runtime/plan/sharding.py",
        "if keys is None:  # its rows would stand in every shard\n            return {}",
        "if keys is None:\n            continue",
    ),
)

PARTNER = "analysis/partner.py"
KILL = "analysis/kill.py"
PURGE = "analysis/purge.py"
ORIGINS = "analysis/origins.py"
SWEEP = "runtime/embedded/sweep.py"

#: Bugs in partner and kill rule, and in how sweeps apply them.
PURGING = (
    bug(
        "partners mirrored in time",
        PARTNER,
        'call("le", Attr(named(y)), plus(Attr(x), c, own[x].type)) for x, y, c in self.after',
        'call("le", Attr(x), plus(Attr(named(y)), c, own[x].type)) for x, y, c in self.after',
        required=True,
    ),
    bug(
        "no waiting for a partner's last tick",
        PARTNER,
        "b[other.name, y] - d)",
        "b[other.name, y] - d + 1)",
        required=True,
    ),
    bug(
        "ignored occurrences are asked for partners",
        PURGE,
        "        speaking = [i for i in streams if i not in zone.ignored]\n",
        "        speaking = list(streams)\n",
        required=True,
    ),
    bug(
        "rows that may be taken back kill",
        KILL,
        "        case _:\n            return False\n\n\ndef _kill(",
        "        case _:\n            return True\n\n\ndef _kill(",
        required=True,
    ),
    bug(
        "kills by progress a tick early",
        KILL,
        "passed = [(a, 1 + c - d)",
        "passed = [(a, 2 + c - d)",
        required=True,
    ),
    bug(
        "kills by a distance added, not subtracted",
        KILL,
        "after = [(x, c - d)",
        "after = [(x, c + d)",
    ),
    bug(
        "kills up to a distance added, not subtracted",
        KILL,
        "before = [(x, c - d)",
        "before = [(x, c + d)",
    ),
    bug(
        "padded attributes count as copies",
        ORIGINS,
        'return both if node.kind == "inner" else left',
        'return both if node.kind in ("inner", "left") else left',
    ),
    bug(
        "only one zone is looked at",
        SWEEP,
        "for case in self.query.purge.cases:",
        "for case in self.query.purge.cases[:1]:",
        required=True,
    ),
    bug(
        "readers without rules are not asked",
        SWEEP,
        "            if not (leaf.partner or leaf.kill)\n",
        "            if self.query.purge is not None and not (leaf.partner or leaf.kill)\n",
        required=True,
    ),
    Bug(
        "killed rows are no partners",
        (
            Patch(SWEEP, "        rows = self._partnered(case, stored)\n", "        rows = stored\n"),
            Patch(
                SWEEP,
                "        return [(_id(self.by_occurrence[i]), one[ROW]) for i, one in rows.items()]",
                "        rows = self._partnered(case, rows)\n"
                "        return [(_id(self.by_occurrence[i]), one[ROW]) for i, one in rows.items()]",
            ),
        ),
    ),
    bug(
        "NULL keys have no partners",
        PARTNER,
        'call("eq_null_safe", Attr(a)',
        'call("eq", Attr(a)',
    ),
)

USE = (
    bug(
        "buffers told apart by what they hold alone",
        LOWER,
        "leaf.buffer and (leaf.buffer.id, leaf.buffer.chain)",
        "leaf.buffer and leaf.buffer.chain",
    ),
    bug(
        "kept until the oldest row may go",
        "runtime/state_listing.py",
        "min((range_[x][1] + d for",
        "min((range_[x][0] + d for",
    ),
    bug(
        "kept until one of the views lets go",
        "runtime/state_listing.py",
        "until[a] = max(reach, until.get(a, -INF))",
        "until[a] = min(reach, until.get(a, INF))",
    ),
    bug(
        "a reader needs rows until every promise has gone by",
        "runtime/state_listing.py",
        "return not self.until or any(self.progress[a] >= t",
        "return not self.until or any(self.progress[a] > t",
    ),
    bug(
        "a bound of the extent that is one tick short",
        "runtime/metrics.py",
        "max(0, int(horizon) + newest - slowest)",
        "max(0, int(horizon) + newest - slowest - 1)",
    ),
    bug(
        "the slowest input left out of the bound",
        "runtime/metrics.py",
        "slowest = min((b for b in reached if b != INF), default=INF)",
        "slowest = max((b for b in reached if b != INF), default=INF)",
    ),
    bug(
        "the least demanding reader bounds a buffer",
        "runtime/metrics.py",
        "bound = quantity(max(known), kind)",
        "bound = quantity(min(known), kind)",
    ),
    bug(
        "nothing said of rejected rows",
        "runtime/exporters.py",
        'yield "rows", (stream, reason), rows',
        'yield "rows", (stream, "rejected"), rows',
    ),
    bug(
        "a long edge through the boxes",
        "runtime/plan/drawing.py",
        "between = range(layer[edge.source] + 1, layer[edge.target])",
        "between = range(layer[edge.source] + 2, layer[edge.target])",
    ),
    bug(
        "labels that end their quotes",
        "runtime/plan/graph.py",
        'c.isalnum() or c in " .,:_-+()" else',
        "c.isalnum() or c in ' .,:_-+()\"' else",
    ),
)

ARRIVING = (
    bug(
        "the time of arrival needs data to go on",
        RUNNER,
        "            if one_source.arrival is not None:\n",
        "            if one_source.arrival is not None and name in ingested:\n",
    ),
    bug(
        "rows arrive at the clock although it runs behind",
        RUNNER,
        "        return max([clock, *(b + 1 for b in before)])\n",
        "        return clock\n",
    ),
    bug(
        "rows arrive when others had arrived already",
        RUNNER,
        "*(b + 1 for b in before)",
        "*before",
    ),
    bug(
        "rows arrive after the batch that takes them in",
        INTAKE,
        "pl.lit(intake.arrival, pl.Int64)",
        "pl.lit(intake.arrival + 1, pl.Int64)",
    ),
    bug("equal rows that arrive at different times conflict", KEYS, "not in (*key, arrival)]", "not in key]"),
    bug("the idle follow arrivals", "runtime/idle.py", " and a != options[other.name].arrival\n", "\n"),
)

PROTOCOL = (
    bug(
        "a recovery does not publish",
        "runtime/state/checkpoint.py",
        "            if not store.exists(marker_path(manifest.seq)):\n",
        "            if False:\n",
    ),
    bug(
        "results are out before the commit",
        "runtime/state/checkpoint.py",
        '        store.failpoints.hit("commit-before-manifest")\n',
        '        self._publish(manifest)\n        store.failpoints.hit("commit-before-manifest")\n',
    ),
    bug(
        "two writers commit one batch",
        "runtime/state/checkpoint.py",
        "            if not store.create_exclusive(manifest_path(manifest.seq), encode_manifest(manifest)):\n",
        "            store.create_exclusive(manifest_path(manifest.seq), encode_manifest(manifest))\n            if False:\n",
    ),
    bug(
        "the sweep takes state for leftovers",
        "runtime/state/garbage.py",
        "[path for path in found if path not in kept and not (",
        "[path for path in found if not (",
    ),
    bug(
        "a restart forgets progress",
        RUNNER,
        "            self.progress.load(last.progress)\n",
        "",
    ),
    bug(
        "a restart counts from nothing",
        RUNNER,
        "            self.counts |= last.counts\n",
        "",
    ),
    bug(
        "a failing look at a file is no refusal",
        "runtime/state/segments.py",
        '    with storage_errors(f"reading {file.path}"):\n        try:\n',
        "    if store.where:\n        try:\n",
    ),
)

BUGS = REQUIRED + ANALYSIS + RUNTIME + COMMON + INPUT + RECURSIVE + SHARDING + PURGING + USE + ARRIVING + PROTOCOL
