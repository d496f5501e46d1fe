"""Slips in folding: versions of its rules that R30 to R35 say do not serve, and what a run makes of them."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

REGION = "analysis/state/folding/region.py"
COMPLEMENT = "analysis/state/folding/complement.py"
CLASSES = "analysis/state/folding/classes.py"
FOLDING = "analysis/state/folding/foldable.py"
LIMITS = "analysis/state/folding/runtime_limits.py"
FOLD = "runtime/plan/folding/fold.py"
WEIGHTS = "runtime/plan/folding/weights.py"
CARRIERS = "runtime/plan/folding/carriers.py"
UNIONS = "runtime/plan/folding/unions.py"
TOTALS = "algebra/rewrites/totals.py"
FOLDED = "runtime/eval/aggregates/fold_rows.py"
GARBAGE = "runtime/batch/garbage.py"
LOOP = "runtime/batch/loop.py"
LOWER = "runtime/plan/lower.py"
SHARDS = "runtime/plan/folding/shards.py"

GROUP = Group(
    "folding",
    ("tests/analysis/test_folding.py", "tests/runtime/test_folding.py", "tests/properties/test_folding.py"),
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
            '        reads += _of_attributes(sink.held, sink.node.keys, "the group key", mend)\n',
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
            "    if aggregate.entry.stored is not Stored.PARTIAL or not reads_alone(term, sink.held):\n        return None\n    (part,) = own_parts(term, sink.held)\n",
            "    if aggregate.entry.stored is not Stored.PARTIAL:\n        return None\n    part = next(own_parts(term, sink.held), None)\n",
        ),
        bug(
            "aggregates that do not merge have payload",
            CLASSES,
            "    if aggregate.entry.stored is not Stored.PARTIAL or not reads_alone(term, sink.held):\n",
            "    if not reads_alone(term, sink.held):\n",
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
            "    if not region.existence:\n        return Classes(_reads(region, settled), _payload(region))\n",
            "    if not region.existence and not any(_dominated(region, x, settled) for x in schema.temporal):\n        return Classes(_reads(region, settled), _payload(region))\n",
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
            "    return None if any(x in attributes_of(entry.term) for entry in read) else Classes(read, (), best)\n",
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
            "        return isinstance(comparison.true.bound, Bounded)\n    return bool(comparison.bounds)\n",
            "        return not isinstance(comparison.false.bound, Static)\n    return True\n",
        ),
        bug(
            "an argument of a padded row is payload",
            CLASSES,
            "    return part if sink.timed or is_null_of_nulls(part, sink.row) else None\n",
            "    return part\n",
        ),
        bug(
            "rows fold by how far the inputs have come",
            GARBAGE,
            "        return buffer.fold.settled(progress.queries)\n",
            "        return buffer.fold.settled({query.name: query.propagate(progress.bounds(self.plan), progress.queries[query.name]) for query, _ in self.plan.readers(buffer)})\n",
        ),
        bug(
            "rows fold before the increment has passed by which they are settled",
            "runtime/batch/loop.py",
            "        last, clock = self.checkpoint.manifest, batch.intent.clock\n",
            "        from tidegate.algebra.terms import TRUE\n        from tidegate.runtime.batch.executor import Rewrite\n\n"
            "        p = state.progress.copy()\n"
            "        p.queries |= {q.name: q.propagate(p.bounds(self.plan), p.queries[q.name]) for q in self.plan.queries}\n"
            "        folding = [b for b in self.plan.buffers if b.fold is not None and state.segments[b.id]]\n"
            "        rewrites = [Rewrite(b, state.segments[b.id], TRUE, 0, b.fold.settled(p.queries)) for b in folding]\n"
            "        folded = zip(folding, self.executor.rewrite(batch, rewrites), strict=True)\n"
            "        state = replace(state, segments={**state.segments, **{b.id: some for b, some in folded}})\n"
            "        last, clock = self.checkpoint.manifest, batch.intent.clock\n",
        ),
        bug(
            "rows that fold are gone for the other occurrence of their stream",
            "runtime/plan/lower.py",
            "        buffer = None if self.key is None else buffers[self.key]\n",
            "        buffer = None if self.key is None else next((b for k, b in buffers.items() if k[0] == self.key[0] and b.fold), buffers[self.key])\n",
        ),
        bug(
            "rows fold once one of their readers has settled them",
            FOLD,
            "        for reader in self.readers:\n            p = progress[reader.query]\n",
            "        for reader in self.readers[:1]:\n            p = progress[reader.query]\n",
        ),
        bug(
            "a side of a union is counted once for all of a class",
            UNIONS,
            "    number = added([n or ONE for n in numbers]) if any(n is not None for n in numbers) else None\n",
            "    number = added([ONE for _ in numbers]) if any(n is not None for n in numbers) else None\n",
        ),
        bug(
            "partial results of a side of a union count once beside its other rows",
            UNIONS,
            "            if any(factor is not None for factor in factors):\n",
            "            if False:\n",
        ),
        bug(
            "only what one side of a union carries is its partial result",
            UNIONS,
            '    return {**alone, **({} if one.order is None else {"by": one.order}), **own}\n',
            '    return {**own, **alone, **({} if one.order is None else {"by": one.order})}\n',
        ),
        bug(
            "a difference compares what rows carry",
            WEIGHTS,
            "            return remaining(node, below[0], below[1], self.mark), sides[0][1]\n",
            "            return Project(Difference(below[0], below[1]), below[0].schema.names), sides[0][1]\n",
        ),
        bug(
            "rows fold before the later of two instants is settled",
            FOLD,
            '                conditions |= {call("not", query.keep.condition(p)): None for query in term.queries}\n',
            "                pass\n",
        ),
        bug(
            "of folds that are one what the first reads is stored",
            FOLD,
            "        added = dict(sorted({**dict(self.added), **dict(other.added)}.items()))\n",
            "        added = dict(self.added)\n",
        ),
        bug(
            "each reader of folded rows has a buffer",
            FOLD,
            "        return replace(self, added=(), merged=(), readers=())\n",
            "        return self\n",
        ),
        bug(
            "the row of a class is a mixture",
            FOLDED,
            "    return pl.concat([only(part, rows.columns) for part in (*unfolded, classes)])\n",
            "    classes = classes.with_columns(*(old[name].reverse()[groups[_ROW]] for name in schema.temporal[:1]))\n    return pl.concat([only(part, rows.columns) for part in (*unfolded, classes)])\n",
        ),
        bug(
            "folded rows of other truth values are one",
            FOLD,
            "        return SettledCondition(conjunction(list(conditions)), tuple(truths))\n",
            "        return SettledCondition(conjunction(list(conditions)), ())\n",
        ),
        bug(
            "folded rows forget what is read of them",
            WEIGHTS,
            "    columns.keys |= dict.fromkeys(read.term for read in folding.classes.read)\n",
            "",
        ),
        bug(
            "a row that stands for several counts once beside others",
            WEIGHTS,
            "        if any(counting):\n",
            "        if False:\n",
        ),
        bug(
            "of two folded streams the rows of one count",
            CARRIERS,
            "            product = number if product is None else call(product_of, product, number)\n",
            "            product = number\n",
        ),
        bug(
            "partial totals count once beside other folded rows",
            WEIGHTS,
            "        return times(self.schema, [carrier.factor(aggregate.name) for carrier in self.carried], product_of)\n",
            "        own = any(aggregate.name in carrier.parts for carrier in self.carried)\n        return times(self.schema, [] if own else [carrier.factor(aggregate.name) for carrier in self.carried], product_of)\n",
        ),
        bug(
            "a padded row is none",
            CARRIERS,
            '            number: Term = call("coalesce", Attr(factor), ONE) if schema[factor].nullable else Attr(factor)\n',
            "            number: Term = Attr(factor)\n",
        ),
        bug(
            "the best order may be one of no value",
            CARRIERS,
            "        nullable = [term for term in (x, t) if resolve(term, schema).nullable]\n",
            "        nullable: list[Term] = []\n",
        ),
        bug(
            "of equal orders the greatest value counts",
            WEIGHTS,
            "Function.MAX if form is Form.GREATEST else Function.MIN\n",
            "Function.MIN if form is Form.LEAST else Function.MAX\n",
        ),
        bug(
            "a folded row is read beside the rows that it stands for",
            FOLDED,
            "    unfolded = [rows.filter(~is_settled)]\n",
            "    unfolded = [rows]\n",
        ),
        bug(
            "rows fold before the increment has passed",
            LOOP,
            "        evaluation = Evaluation(\n            self.plan,\n            self.executor,\n",
            "        from tidegate.algebra.terms import TRUE\n"
            "        from tidegate.runtime.batch.executor import Rewrite\n"
            "        ahead, plan = state.progress.copy(), self.plan\n"
            "        bounds = ahead.bounds(plan)\n"
            "        ahead.queries |= {q.name: q.propagate(bounds, ahead.queries[q.name]) for q in plan.queries}\n"
            "        some = [b for b in plan.buffers if b.fold is not None and state.segments[b.id]]\n"
            "        settled = {b.id: self.garbage._folding(b, ahead) for b in some}\n"
            "        made = [Rewrite(b, state.segments[b.id], TRUE, 1 << 20, settled[b.id]) for b in some if settled[b.id]]\n"
            "        done = zip(made, self.executor.rewrite(batch, made), strict=True)\n"
            "        folded = {one.buffer.id: tuple(segments) for one, segments in done}\n"
            "        state = replace(state, segments={**state.segments, **folded})\n"
            "        evaluation = Evaluation(\n            self.plan,\n            self.executor,\n",
        ),
        bug(
            "a row that one occurrence folds is gone for the other",
            LOWER,
            "        layout.want(key, columns, occurrence.stream.schema.temporal)\n    return _QueryDraft(facts, over.tree",
            "        layout.want(key, columns, occurrence.stream.schema.temporal)\n"
            "    folding = {leaf.key[0]: leaf.key for i, leaf in enumerate(leaves) if leaf.key and i in folds}\n"
            "    for i, leaf in enumerate(leaves):\n"
            "        if leaf.key and leaf.occurrence and i not in folds and leaf.key[0] in folding:\n"
            "            leaves[i] = replace(leaf, key=folding[leaf.key[0]])\n"
            "            layout.want(folding[leaf.key[0]], leaf.columns, leaf.occurrence.stream.schema.temporal)\n"
            "    return _QueryDraft(facts, over.tree",
        ),
        bug(
            "what a folded sum of doubles has lost is lost",
            FOLDED,
            "(rest + groups[lost]).alias(lost)",
            "groups[lost]",
        ),
        bug(
            "what classes have lost is not added",
            WEIGHTS,
            '        whole = call("add", total, call("coalesce", lost, Lit(0.0, DOUBLE)))\n',
            "        whole = total\n",
        ),
        bug(
            "a class whose sum is no number is folded",
            FOLDED,
            "        *(~pl.col(total).is_finite() & (pl.col(_finite(total)) == 1) for total in _doubles(fold)),\n",
            "",
        ),
        bug(
            "a class without a value is gone",
            FOLDED,
            "    ).fill_null(value=False)\n    too_great",
            "    )\n    too_great",
        ),
        bug(
            "an infinite value is never folded",
            FOLDED,
            " & (pl.col(_finite(total)) == 1) for",
            " for",
        ),
        bug(
            "doubles of other streams are multiplied",
            LIMITS,
            "                if type_ != BIGINT:\n",
            "                if type_ != BIGINT and form is not Form.DOUBLE_SUM:\n",
        ),
        bug(
            "of a class of hashes the least number is kept",
            FOLDED,
            "            return Aggregate(partial.name, Function.LAST, partial.argument, Attr(_rank(partial.name)))\n",
            "            return Aggregate(partial.name, Function.FIRST, partial.argument, Attr(_rank(partial.name)))\n",
        ),
        bug(
            "one value stands for those of all parts",
            FOLDED,
            "        yield found.alias(_place(values.name))\n",
            "        yield (found * 0).alias(_place(values.name))\n",
        ),
        bug(
            "a value counts once whatever its row stands for",
            WEIGHTS,
            "                aggregate = replace(aggregate, by=self.rows())\n",
            "                pass\n",
        ),
        bug(
            "of other rows than those of a sketch it is not known how many there are",
            WEIGHTS,
            "            a.entry.counts_by or (_form",
            "            (_form",
        ),
        bug(
            "a sketch counts every value once",
            "runtime/eval/aggregates/sketches.py",
            "(np.array([place]), np.array([number]))",
            "(np.array([place]), np.array([1]))",
        ),
        bug(
            "aggregates read a settled term as one of the row",
            WEIGHTS,
            "            leaf_region = without(leaf_region, later, schema)\n",
            "            pass\n",
        ),
        bug(
            "rows go that are not folded",
            FOLDED,
            "    unfolded = [rows.filter(~is_settled)]\n",
            "    unfolded = [rows.clear()]\n",
        ),
        bug(
            "the best row of a class goes",
            FOLDED,
            "Function.LAST if best is Best.GREATEST else Function.FIRST",
            "Function.FIRST if best is Best.GREATEST else Function.LAST",
        ),
        bug(
            "a total that does not fit is none",
            FOLDED,
            "    if too_great.height:\n",
            "    if False:\n",
        ),
        bug(
            "a total of no values is one that does not fit",
            FOLDED,
            "pl.col(total).is_null() & (pl.col(_number(total)) > 0)",
            "pl.col(total).is_null()",
        ),
        bug(
            "a row's part of a total must fit",
            WEIGHTS,
            "for half in halves(value))\n",
            'for half in (call("sub", value, value), value))\n',
        ),
        bug(
            "the low half of a negative number is a large one",
            TOTALS,
            '    low = call("shift_right", call("shift_left", value, _HALF), _HALF)\n    carried = call("bit_and", call("shift_right", value, _SIGN), _ONE)\n',
            '    low = call("bit_and", value, _LOW_HALF)\n    carried = Lit(0, BIGINT)\n',
        ),
        bug(
            "keys of folded rows keep their names for Arrow",
            "runtime/eval/aggregates/compiled.py",
            'key.alias("").to_arrow()',
            "key.to_arrow()",
        ),
        bug(
            "a row whose total of halves does not fit goes",
            "runtime/eval/lenient.py",
            "            case Imbed(_, _, term) if term in self.totals:\n",
            "            case Imbed(_, _, term) if False:\n",
        ),
        bug(
            "more combinations than can be counted are none",
            WEIGHTS,
            "        if times is None or not (combined or any(carrier.several for carrier in self.carried)):\n",
            "        if True:\n",
        ),
        bug(
            "the high half forgets what is carried",
            TOTALS,
            '        carried = call("add", self.high, call("shift_right", self.low, _HALF))\n',
            "        carried = self.high\n",
        ),
        bug(
            "of combinations those are counted that can be",
            WEIGHTS,
            '        return call("if", call("eq", beyond, ZERO), call("coalesce", total, ZERO), too_many)\n',
            '        return call("coalesce", total, ZERO)\n',
        ),
        bug(
            "every piece is folded with all before",
            "runtime/engines/embedded/steps/rewriting.py",
            "            if sum(rows.height for rows in done) >= max(2 * classes, PIECE_ROWS):\n",
            "            if sum(rows.height for rows in done) >= PIECE_ROWS:\n",
        ),
        bug(
            "pieces are folded by themselves",
            "runtime/engines/embedded/steps/rewriting.py",
            "                done = [folded(pl.concat(done), buffer.fold, settled, buffer.schema)]\n",
            "                done = [folded(done[-1], buffer.fold, settled, buffer.schema)]\n",
        ),
        bug(
            "a sweep takes settled rows for folded ones",
            "runtime/engines/embedded/steps/rewriting.py",
            "        parts = settled_apart(folded(rows, fold, settled, buffer.schema), fold, settled, buffer.schema)\n",
            "        parts = settled_apart(rows, fold, settled, buffer.schema)\n",
        ),
        bug(
            "a batch does every fold that is due",
            GARBAGE,
            "    return _up_to(allowed, due) if due else _up_to(allowed // 2, ordered)\n",
            "    return due or _up_to(allowed // 2, ordered)\n",
        ),
        bug(
            "shards of many classes stay whole",
            SHARDS,
            "        if self.levels is not None or classes > self.most:\n",
            "        if self.levels is not None:\n",
        ),
        bug(
            "a shard of more than the driver holds waits for ever",
            SHARDS,
            "        some = every if most_bytes is None else _affordable(tree, every, most_bytes)\n",
            "        some = every if most_bytes is None or _affordable(tree, every, most_bytes) == every else []\n",
        ),
        bug(
            "rows that wait above are folded without end",
            SHARDS,
            "        if node in inner:\n",
            "        if False:\n",
        ),
        bug(
            "shards by another hash are taken for ours",
            SHARDS,
            "        return segment.shard >> _NODE_BITS == self.version\n",
            "        return segment.shard > 0\n",
        ),
        bug(
            "equal keys go to several shards",
            FOLDED,
            "    node = pl.struct(keys).hash(0) // (1 << (64 - _BITS * deeper)) + BRANCHES**deeper\n",
            "    node = pl.int_range(pl.len(), dtype=pl.UInt64) % BRANCHES**deeper + BRANCHES**deeper\n",
        ),
        bug(
            "the shard of rows in memory is forgotten",
            "runtime/engines/embedded/steps/pending_segments.py",
            "        return pending.add(buffer, rows, shard)\n",
            "        return pending.add(buffer, rows)\n",
        ),
    ),
)
