"""Calls that do not fit a signature, told as errors of the query: with the user's line and how to write it."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import NoReturn, ParamSpec, TypeVar

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.diagnostics.tracebacks import trimmed, trimmed_calls
from tidegate.algebra.dsl.checks.suggestions import KEYWORDS, MEMBERS, METHOD_KEYWORDS
from tidegate.algebra.dsl.here import Here, unknown_name
from tidegate.algebra.errors import QueryError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_C = TypeVar("_C", bound=type)


def called(
    code: str = "TG114", hint: str = "", **missing: tuple[str, str]
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """The function, raising `QueryError` where arguments do not fit its signature, with a traceback of the user's
    frames.

    `missing` gives the code and the hint for a parameter that was left out; without `hint` the signature is shown.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @trimmed
        @functools.wraps(function)
        def checked(*arguments: _P.args, **named: _P.kwargs) -> _T:
            try:
                return function(*arguments, **named)
            except TypeError as error:
                # A traceback that ends here: the call itself failed, nothing inside the function did.
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                text = str(error)
                problem = next((given for name, given in missing.items() if f"'{name}'" in text), (code, hint))
                with Here():
                    raise QueryError(
                        problem[0], text, hint=_near(text, function) + (problem[1] or f"write {_written(function)}")
                    ) from None

        return checked

    return decorate


def checked_calls(cls: _C) -> _C:
    """The class, with all its public methods `called`, all that users call `trimmed`, and an error of ours for members
    that it has not."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method) and not hasattr(method, "__wrapped__"):
            setattr(cls, name, called()(method))
    if not hasattr(cls, "__getattr__"):
        cls.__getattr__ = _unknown_member  # type: ignore[attr-defined]  # type checkers shall refuse unknown names themselves
    return trimmed_calls(cls)


def _unknown_member(self: object, name: str) -> NoReturn:
    if name.startswith("_"):
        raise AttributeError(name)
    known = [member for member in dir(type(self)) if not member.startswith("_")]
    near = nearest(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known)}"
    if not near and hasattr(self, "_elsewhere"):
        hint = self._elsewhere(name) or hint
    hint = MEMBERS.get((type(self).__name__, name), hint)
    raise unknown_name(f"a {type(self).__name__} has no {name!r}", hint)


def check_options(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """`QueryError` TG114 for a keyword that `what` does not take, with the one that is probably meant."""
    for name in given:
        if name not in known:
            near = nearest(name, known, 1)
            hint = f"did you mean {near[0]}=?" if near else f"{KEYWORDS.get(name, '')}there are {', '.join(known)}"
            raise QueryError("TG114", f"{what} takes no {name}=", hint=hint)


def refuse_texts(what: str, *values: object) -> None:
    """`QueryError` TG114 for a function of texts alone, which are meant as the names of attributes."""
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        attributes = ", ".join(f"r.{text}" for text in texts[:3] if text.isidentifier()) or "r.x"
        raise QueryError(
            "TG114",
            f"tg.{what} of texts alone, {', '.join(map(shown, texts[:3]))}, is the same in every row",
            hint=f"text is a constant here; attributes are {attributes}, and a text alone is tg.lit(...), an instant "
            "tg.timestamp(...), a duration tg.duration(...), a date datetime.date(...)",
        )


def _near(text: str, function: Callable[..., object]) -> str:
    """Which keyword is meant by one that is not known."""
    asked = re.search(r"unexpected keyword argument '(\w+)'", text)
    if asked is None:
        return ""
    if special := METHOD_KEYWORDS.get((function.__name__, asked[1])):
        return special
    # What stands without a name is no keyword: `*by`.
    parameters = inspect.signature(function).parameters.items()
    named = [name for name, parameter in parameters if parameter.kind is not inspect.Parameter.VAR_POSITIONAL]
    near = nearest(asked[1], named, 1)
    return f"did you mean {near[0]}=? " if near else KEYWORDS.get(asked[1], "")


def _written(function: Callable[..., object]) -> str:
    parts = []
    for name, parameter in inspect.signature(function).parameters.items():
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                parts.append("*" + name)
            case inspect.Parameter.VAR_KEYWORD:  # names are the user's to choose
                parts.append("name=...")
            case inspect.Parameter.KEYWORD_ONLY:
                parts.append(f"{name}=...")
            case _:
                parts.append(name)
    owner = "x." if parts[:1] == ["self"] else "tg."
    return f"{owner}{function.__name__}({', '.join(parts[1:] if owner == 'x.' else parts)})"
