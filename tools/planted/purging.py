"""Slips in partner and kill rule, and in how sweeps apply them; with these rules off, other tests never meet them."""

from __future__ import annotations

from tools.planted.bugs import Bug, Group, Patch, bug

PARTNER = "analysis/state/partner.py"
KILL = "analysis/state/kill.py"
PURGE = "analysis/purge.py"
ORIGINS = "analysis/state/origins.py"
SWEEP = "runtime/eval/purge_rows.py"

GROUP = Group(
    "purging",
    ("tests/runtime/test_purge.py", "tests/properties/test_purge.py"),
    (
        bug(
            "partners mirrored in time",
            PARTNER,
            'call("le", Attr(named(other_least.get(y, y))), plus(Attr(x), c, schema[x].type)) for x, y, c in self.after',
            'call("le", Attr(x), plus(Attr(named(other_least.get(y, y))), c, schema[x].type)) for x, y, c in self.after',
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
            "            if not (leaf.partner or leaf.kill or leaf.judged)\n",
            "            if self.query.purge is not None and not (leaf.partner or leaf.kill or leaf.judged)\n",
            required=True,
        ),
        bug(
            "a rule is applied once",
            SWEEP,
            "seen.get(rule) != others.height:",
            "rule not in seen:",
        ),
        bug(
            "a chain of partners falls from one end alone",
            SWEEP,
            "for rule in rules[:: 1 if number % 2 == 0 else -1]:",
            "for rule in rules:",
        ),
        Bug(
            "killed rows are no partners",
            (
                Patch(SWEEP, "        rows = self._partnered(case, stored)\n", "        rows = stored\n"),
                Patch(
                    SWEEP,
                    "        return [(_id(self.by_occurrence[i]), frame[ROW]) for i, frame in rows.items()]",
                    "        rows = self._partnered(case, rows)\n"
                    "        return [(_id(self.by_occurrence[i]), frame[ROW]) for i, frame in rows.items()]",
                ),
            ),
        ),
        bug(
            "NULL keys have no partners",
            PARTNER,
            'call("eq_null_safe", Attr(a)',
            'call("eq", Attr(a)',
        ),
    ),
)
