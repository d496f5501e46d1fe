"""Run options are written out where users give them, and mean there what `RunOptions` says."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import tidegate as tg
from tidegate.runtime import api
from tidegate.runtime.engines.clock import system_clock
from tidegate.runtime.engines.options import RunOptions

OPTIONS = {option.name: option for option in fields(RunOptions) if option.init}
#: Options that a call does not have: a whole run needs neither purging nor folding and is as quick as it can be, Spark
#: has threads of its own.
LEFT_OUT = {
    tg.Program.run: {"collect_garbage", "purging", "folding", "clock", "quarantine_keep", "tune", "cache_bytes"},
    tg.Program.session: set[str](),
    tg.Program.start: {"threads"},
    tg.deployment: {*OPTIONS} - {"quarantine_keep", "tune", "threads"},
    tg.Deployment: {*OPTIONS} - {"quarantine_keep", "tune", "threads"},
}
#: None of them is the default.
VALUES: dict[str, Any] = {
    "collect_garbage": "exact",
    "purging": "always",
    "folding": "off",
    "clock": lambda: dt.datetime(2026, 3, 2, tzinfo=dt.UTC),
    "on_batch": print,
    "schedule": tg.schedule(budget="1m"),
    "threads": 2,
    "quarantine_keep": "30d",
    "on_error": "fail",
    "tune": "500ms",
    "cache_bytes": 1 << 20,
}


@pytest.mark.parametrize("call", LEFT_OUT, ids=lambda call: call.__qualname__)
def test_names_types_and_defaults_agree(call: Callable[..., object]) -> None:
    parameters = inspect.signature(call).parameters
    assert {*OPTIONS} - {*parameters} == LEFT_OUT[call]
    for name in {*OPTIONS} - LEFT_OUT[call]:
        if name == "clock":  # its default is a function, which a signature shows by its address
            assert (parameters[name].annotation, parameters[name].default) == ("Clock | None", None)
            assert (OPTIONS[name].type, OPTIONS[name].default) == ("Clock", system_clock)
        else:
            assert parameters[name].annotation == OPTIONS[name].type
            assert parameters[name].default == OPTIONS[name].default


@pytest.mark.parametrize("name", ["run", "session", "start"])
def test_each_option_is_handed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(api, name, lambda *_, **options: given.update(options))
    stream = tg.stream("S", "t bigint", progress="t")
    call = getattr(tg.program(Q=stream), name)
    values = {option: value for option, value in VALUES.items() if option in inspect.signature(call).parameters}
    match name:
        case "run":
            call({}, **values)
        case "session":
            call(**values)
        case _:
            call(None, sources={}, checkpoint="state", **values)
    for option, value in values.items():
        assert value != OPTIONS[option].default
        assert getattr(given["options"], option) == value
