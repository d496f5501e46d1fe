"""What a planted bug is: a patch, and the group whose tests should notice it."""

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


@dataclass(frozen=True, slots=True)
class Group:
    """Bugs of one kind and the tests that can show them, the quick ones first."""

    name: str
    tests: tuple[str, ...]
    bugs: tuple[Bug, ...]


def bug(name: str, file: str, old: str, new: str, *, required: bool = False, loops: bool = False) -> Bug:
    return Bug(name, (Patch(file, old, new),), required, loops)
