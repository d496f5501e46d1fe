"""What a user gave, as errors show and name it, and which name was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Characters of a value that an error shows.
_SHOWN = 200
#: Names with more characters are not compared: nobody misspells those, but a program may have written them.
_COMPARED = 60
#: Words of a name: parts between signs, and between small and large letters.
_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[A-Z]+")


def shown(value: object) -> str:
    """The `repr` of a value, or as much of it as one reads; of whatever was given, so nothing here fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value's own method raises anything; Python writes no very long integers
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def kind_of(value: object) -> str:
    """What kind of thing a value is, with its article."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def nearest(name: str, known: Iterable[str], most: int = 2) -> list[str]:
    """Those of the known names that are meant by one that is not known, `most` at most; none if it is another name
    altogether.

    The first of these that fits any of them decides: it is the same but for case and signs; it is misspelt, by one
    letter of three to five, two of six to eight, three of more that is wrong, missing, too many or swapped with its
    neighbour; one of the two begins as the other does, or is its last words: `cust` and `customer_name`, `first_value`
    and `first`.
    """
    asked = _plain(name)
    if not 0 < len(asked) <= _COMPARED:
        return []
    others = {candidate: _plain(candidate) for candidate in known if len(candidate) <= _COMPARED}
    if same := [candidate for candidate, plain in others.items() if plain == asked]:
        return same[:most]
    if few := misspelt(name, others):
        return few[:most]
    return [candidate for candidate in others if _shares_words(name, candidate)][:most]


def misspelt(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that a name is with the fewest wrong letters; none if it is wrong by more."""
    asked = _plain(name)
    edits = (
        (_edits(asked, plain, _allowed(asked, plain)), candidate) for candidate in known if (plain := _plain(candidate))
    )
    few = (
        sorted((count, candidate) for count, candidate in edits if count is not None) if len(asked) <= _COMPARED else []
    )
    return [candidate for count, candidate in few if count == few[0][0]]


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _allowed(left: str, right: str) -> int:
    """How many letters of a name may be wrong. Names that share no first letter, or two of three letters, are more than
    misspelt.
    """
    length = min(len(left), len(right))
    if length < 3 or left[0] != right[0] or (len(left) == len(right) == 3 and sorted(left) != sorted(right)):
        return 0
    return 1 if length < 6 else 2 if length < 9 else 3


def _edits(left: str, right: str, most: int) -> int | None:
    """How many letters are to be changed, added, left out or swapped with their neighbour, if no more than `most`."""
    if abs(len(left) - len(right)) > most:
        return None
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, its in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == its:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def _shares_words(asked: str, known: str) -> bool:
    """One begins as the other does, or is its last words; of a name that is longer than the known one, four letters at
    least.
    """
    first, second = ([word.casefold() for word in _WORD.findall(name)] for name in (asked, known))
    if sorted(first) == sorted(second):
        return True
    shorter, longer = sorted((first, second), key=lambda words: (len(words), len("".join(words))))
    if len("".join(shorter)) < (3 if shorter is first else 4):
        return False
    if longer[-len(shorter) :] == shorter:
        return True
    return longer[: len(shorter) - 1] == shorter[:-1] and longer[len(shorter) - 1].startswith(shorter[-1])
