"""Figures with their targets, and the one table that `make bench` ends with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured; `most` or `least` is the target, where there is one."""

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.most is not None:
            return self.value <= self.most
        return None if self.least is None else self.value >= self.least

    def line(self) -> str:
        target = "" if self.met is None else (f"<= {self.most:,g}" if self.most is not None else f">= {self.least:,g}")
        verdict = {None: "", True: "met", False: "missed"}[self.met]
        digits = 0 if self.value >= 1000 else 1 if self.value >= 100 else 2
        return f"{self.name:<74}{self.value:>14,.{digits}f} {self.unit:<10}{target:>12}  {verdict}".rstrip()


def print_table(figures: list[Figure]) -> None:
    print(f"\n{'figure':<74}{'measured':>14} {'':<10}{'target':>12}")
    for figure in figures:
        print(figure.line())
    missed = [figure.name for figure in figures if figure.met is False]
    print(f"targets missed: {len(missed)}" + (f" ({'; '.join(missed)})" if missed else ""))
