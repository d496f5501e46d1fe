"""What a model of contexts is made of: context types, and the transitions that its deriving queries ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Action: TypeAlias = Literal["initiate", "switch", "terminate"]
#: What a context holds by: its last transition, a bag of causes, or a set of them.
HeldBy: TypeAlias = Literal["transition", "bag", "set"]

#: Attributes of a change: the context, whether a window of it ends or starts, when, and when that window began.
CONTEXT: Final = "context"
CHANGE: Final = "change"
TIME: Final = "time"
BEGAN: Final = "began"
#: The two changes. Where one window of a context ends and the next one starts at one instant, this is their order.
END: Final = "end"
START: Final = "start"


@dataclass(frozen=True, slots=True)
class ContextType:
    """A type of contexts. `held_by` a bag of causes: each initiation adds one and each termination takes one away, and
    a window ends as none is left. By a set: a cause that is there already is not added again.
    """

    name: str
    held_by: HeldBy = "transition"


@dataclass(frozen=True, slots=True)
class Transition:
    """What one deriving query asks for at each of its rows, while one of the contexts `within` holds.

    A TERMINATE is asked for by queries of the context itself, and by no others. A SWITCH ends the contexts in which its
    row lies; where its target is the default context, it is a TERMINATE of these. A TERMINATE of `one_cause` takes one
    cause away; else it ends the context, whatever its causes.
    """

    action: Action
    context: str
    within: tuple[str, ...]
    one_cause: bool = False

    def __str__(self) -> str:
        return f"{self.action} {self.context} in {', '.join(self.within)}"
