"""Slips by which a batch does more than it has to: no result differs, and what it costs grows with queries or files."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

GARBAGE = "runtime/batch/garbage.py"
STEPS = "runtime/plan/steps.py"

GROUP = Group(
    "costs of a batch",
    ("tests/runtime/test_garbage.py", "tests/runtime/test_lower.py"),
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
            "disjunction([*dict.fromkeys(leaf.keep(progress[query.name]) for query, leaf in self.readers(buffer))])",
            "disjunction([leaf.keep(progress[query.name]) for query, leaf in self.readers(buffer)])",
        ),
    ),
)
