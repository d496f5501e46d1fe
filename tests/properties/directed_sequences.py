"""The family of row patterns that need many rows, or rows far away: what is called certain, and long rows to come."""

from __future__ import annotations

import random
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.properties.drive import Tally
from tests.strategies.continuations import Judge
from tests.strategies.directed_sequences import SHAPES, directed_continuations, directed_history, directed_sequences

KINDS = (None, None, "contiguous", "next", "any")
#: How many rows may follow. Where rows may be skipped, the meaning looks at all ways to do so.
LONGEST = {None: 9, "contiguous": 9, "next": 6, "any": 5}


@dataclass(slots=True)
class DirectedFamily:
    """What is called certain by a few rows, judged by long rows that may follow, which are drawn to change it.

    A case is valid if something is called certain. `long` are those in which rows to come, more than three, change what
    would be called certain if there were no others.
    """

    kinds: Sequence[str] = tuple(SHAPES)
    selections: Sequence[str | None] = KINDS
    continuations: int = 40
    tally: Tally = field(default_factory=Tally)
    long: int = 0

    def run(self, seed: int) -> str | None:
        """What a case breaks; None if nothing."""
        rng, every = random.Random(f"directed {seed}"), self.selections[seed % len(self.selections)]
        directed = directed_sequences(rng, every=every, kinds=self.kinds)
        rows = directed_history(rng, directed)
        until = rows[-1][0] + rng.choice((0, 0, *directed.gaps))
        self.tally.cases += 1
        text = f"{directed.node.text(['E'])}\n{rows} until {until}"
        try:
            judge = Judge(directed.node)
            certain = judge.certain(rows, until)
            follow = list(directed_continuations(rng, directed, until, LONGEST[every], self.continuations))
            further = judge.changed_by(rows, certain, follow)
            if further is None:
                whole = judge.certain(rows, None)
                self.long += judge.changed_by(rows, whole, (f for f in follow if len(f) > 3)) is not None
        except Exception as error:  # noqa: BLE001  # a crash is a failing case like any other, to be shown
            return "".join(traceback.format_exception(error, limit=-4)) + text
        self.tally.valid += bool(certain.matches)
        self.tally.results += len(certain.matches)
        return None if further is None else f"{text}\ncalled certain {certain}\nchanged by {further}"


DIRECTED = DirectedFamily()
