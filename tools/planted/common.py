"""Slips in how common parts are found and computed."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

REWRITES = "algebra/rewrites/"
COMMON_PARTS = "algebra/rewrites/common.py"
COMMON_PLAN = "runtime/plan/shared_parts.py"

GROUP = Group(
    "common parts",
    ("tests/algebra/test_rewrites.py", "tests/runtime/test_shared_parts.py", "tests/properties/test_embedded.py"),
    (
        bug(
            "selections that go through products are lost on the right",
            "algebra/rewrites/select_through_join.py",
            "_through_products(node.right, to_right)), rest)",
            "node.right), rest)",
        ),
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
            "return part.number, self.relevant[read], self.keys and self.keys[read]",
            "return part.number, self.keys and self.keys[read]",
        ),
        bug(
            "a part is common whatever buffers it reads",
            COMMON_PLAN,
            "numbers.setdefault((node, read), len(numbers))",
            "numbers.setdefault((node, len(read)), len(numbers))",
        ),
        bug(
            "a join is made for all that look up in it",
            "runtime/eval/relational.py",
            "return part is not None and part.done is not None",
            "return part is not None",
        ),
        bug(
            "each query computes what it shares",
            COMMON_PLAN,
            "            self.done = self.compute()\n        return self.done",
            "            return self.compute()\n        return self.done",
        ),
    ),
)
