"""Values that a user gave, as errors show and name them."""

from __future__ import annotations

#: Characters of a value that an error shows.
_SHOWN = 200


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
