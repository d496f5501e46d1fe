"""Slips by which a batch does more than it has to: no result differs, and what it costs grows with queries or files."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GARBAGE = "runtime/batch/garbage.py"
STEPS = "runtime/plan/steps.py"
CODEC = "runtime/state/codec.py"
CHECKPOINT = "runtime/state/checkpoint.py"
LEFTOVERS = "runtime/state/leftovers.py"
THRESHOLDS = "analysis/state/thresholds.py"
SMALL_JOINS = "runtime/eval/small/joins.py"

GROUP = Group(
    "costs of a batch",
    (
        "tests/runtime/test_garbage.py",
        "tests/runtime/test_lower.py",
        "tests/analysis/test_thresholds.py",
        "tests/runtime/test_small_batches.py",
        "tests/runtime/test_driver_segments.py",
        "tests/runtime/state/test_documents.py",
        "tests/runtime/state/test_leftovers.py",
        "tests/runtime/state/test_checkpoint.py",
    ),
    (
        bug(
            "the condition of every buffer is built, whether any row of it is written anew or not",
            GARBAGE,
            "            settled = self._folding(buffer, progress)\n            made",
            "            settled = self._folding(buffer, progress)\n            self.keep(buffer, progress)\n            made",
        ),
        bug(
            "the condition of a buffer is built for each of its rewrites",
            GARBAGE,
            "        rewrites = [replace(one, keep=keeps[one.buffer.id]) for one in chosen]\n",
            "        rewrites = [replace(one, keep=self.keep(one.buffer, progress)) for one in chosen]\n",
        ),
        bug(
            "rows are held against the condition of every reader",
            STEPS,
            "disjunction([*dict.fromkeys(kept.condition for kept in self._kept(buffer, progress))])",
            "disjunction([leaf.keep(progress[query.name]) for query, leaf in self.readers(buffer)])",
        ),
        bug(
            "every query has conditions of its own",
            THRESHOLDS,
            "return _SHAPES.setdefault((",
            "return {}.setdefault((",
        ),
        bug(
            "occurrences are of one shape whose views differ",
            THRESHOLDS,
            "(columns, tuple(view.bounds for view in views), asked)",
            "(columns, asked)",
        ),
        bug(
            "occurrences are of one shape whose conditions differ",
            THRESHOLDS,
            "(columns, tuple(view.bounds for view in views), asked)",
            "(columns, tuple(view.bounds for view in views))",
        ),
        bug(
            "instants of another type have the same conditions",
            THRESHOLDS,
            "tuple((x, stream.schema[x].type) for view",
            "tuple(x for view",
        ),
        bug(
            "what matters is known by where results have come to alone",
            "analysis/state/relevance.py",
            "progress = progress_of(self.promised, old), progress_of(self.promised, new)",
            "progress = (), progress_of(self.promised, new)",
        ),
        bug(
            "thresholds of all progress that ever was stay known",
            THRESHOLDS,
            "            if len(self._known) >= MOST:\n                self._known.clear()\n",
            "",
        ),
        bug(
            "all columns are copied of pairs that are none",
            SMALL_JOINS,
            "_pasted(_of(left, reads), _of(right, reads), lefts, rights)",
            "_pasted(left, right, lefts, rights)",
        ),
        bug(
            "pairs are those of which one side is right",
            SMALL_JOINS,
            "lefts, rights = lefts[holds], rights[holds]",
            "lefts, rights = lefts[holds], rights[: len(lefts[holds])]",
        ),
        bug(
            "the first row of a number is any of its rows",
            "runtime/rows.py",
            'order = np.argsort(column, kind="stable")',
            "order = np.argsort(column)",
        ),
        bug(
            "every segment that the driver of Spark makes is a file",
            "runtime/engines/spark/engine.py",
            "        pending_bytes=PENDING_BYTES,\n",
            "        pending_bytes=0,\n",
        ),
        bug(
            "workers are sent to rows that only the driver has",
            "runtime/engines/spark/executor.py",
            'self._in_files(batch, job) if way.place != "driver" else job, way)',
            "job, way)",
        ),
        bug(
            "workers write anew rows that only the driver has",
            "runtime/engines/spark/executor.py",
            "replace(one, segments=[self.local.on_disk(batch, segment) for segment in one.segments])",
            "one",
        ),
        bug(
            "a segment that workers have read is written again",
            "runtime/engines/embedded/steps/pending_segments.py",
            "        copy = pending.copies.get(segment.path)\n",
            "        copy = None\n",
        ),
        bug(
            "every record of a manifest is spelled in every batch",
            CODEC,
            "self._known.get(key) or self._before.get(key) or (record",
            "self._known.get(key) or (record",
        ),
        bug(
            "the text of a record is known when the record has gone",
            CODEC,
            "or (record, _spelled(codec, record, self))",
            "or (None, _spelled(codec, record, self))",
        ),
        bug(
            "texts of all records that ever were stay known",
            CODEC,
            "        self._before, self._known = self._known, {}\n",
            "        self._before = self._known\n",
        ),
        bug(
            "a batch goes through what its manifest names once more",
            CHECKPOINT,
            "self._collect(batch.unnamed(now.files))",
            "self._collect(batch.unnamed(Retained.of(manifest).files))",
        ),
        bug(
            "what the next batch needs is looked up in the manifest before",
            CHECKPOINT,
            "self._retained[-1].state if",
            "self._retained[0].state if",
        ),
        bug(
            "files of a retired manifest are those that the newest does not name",
            LEFTOVERS,
            "leaving).difference(*(one.files for one in retained))",
            "leaving).difference(retained[-1].files)",
        ),
        bug(
            "a pack is no file that a manifest names",
            LEFTOVERS,
            "frozenset(map(file_of, (*state, *others)))",
            "frozenset((*state, *others))",
        ),
    ),
)
