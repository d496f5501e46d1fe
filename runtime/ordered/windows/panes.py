"""The panes that windows consist of: pieces of time from one possible end of a window to the next, with numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tidegate.algebra.ordered.windows import AlignedWindow
from tidegate.runtime.arrays import Int64Array

#: One number or many.
N = TypeVar("N", int, Int64Array)


@dataclass(frozen=True, slots=True)
class Panes:
    """Pane n has the instants up to `n * every + offset` that pane n - 1 has not; so have windows that end there.

    `many` panes in succession are a block, of which block b has the last one at `b * many`. A window that `grows` has
    the panes of its block so far. Another one has as many as a block: the last ones of a block and the first ones of
    the next.
    """

    every: int
    offset: int
    many: int
    grows: bool

    def of(self, time: Int64Array) -> Int64Array:
        """The pane of each instant."""
        return -((self.offset - time) // self.every)

    def end(self, pane: N) -> N:
        return pane * self.every + self.offset

    def ended(self, reached: int) -> int:
        """The last pane that ends by an instant."""
        return (reached - self.offset) // self.every

    def block(self, pane: N) -> N:
        return -(-pane // self.many)

    def last(self, pane: Int64Array) -> Int64Array:
        """The last window that a pane belongs to."""
        return self.block(pane) * self.many if self.grows else pane + (self.many - 1)

    def before(self, window: Int64Array) -> Int64Array:
        """The last pane before the first one of a window."""
        return (self.block(window) - 1) * self.many if self.grows else window - self.many


@lru_cache(maxsize=256)
def panes_of(window: AlignedWindow) -> Panes:
    """The panes of windows."""
    return Panes(window.every, window.offset, window.size // window.every, window.grows)
