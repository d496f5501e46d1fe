"""Streams whose sources have guards of the clock, and the day on which tests run them."""

from __future__ import annotations

import tidegate as tg

events = tg.stream("E", "k bigint, t timestamp", progress="t")
days = tg.stream("D", "k bigint, day date, seen bigint", progress=["day", "seen"], temporal=["day", "seen"])
NOON = "2026-03-02T12:00Z"


def passed(stream: tg.Relation) -> tg.Program:
    return tg.program(Out=stream)


def at(text: str) -> str:
    return f"2026-03-02T{text}Z"
