"""What `why` says of contexts is so: on random models and transitions, against the slow meaning of the same queries."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

import tidegate as tg
from tests.contexts.test_why import lines
from tests.shards import shards
from tidegate.algebra.nodes import Row
from tidegate.algebra.semantics import evaluate, evaluate_program

ASKED = tg.stream("Asked", "k bigint, t bigint, does bigint", progress="t")
EVENTS = tg.stream("Events", "k bigint, t bigint", progress="t")
CONTEXTS = ("d", "a", "b", "c")
#: Keys of transitions, and one that no transition has.
KEYS = (0, 1, 2, None)
UNSEEN = 7

#: The contexts that hold in a partition, each with the beginning of its window.
Held = dict[str, int | None]
SAID = re.compile(
    r"(?P<label>in context  |not in context  |suspended  )?"
    r"(?:since (?P<since>ever|\d+)(?P<before> or before)?|for every other|for other > (?P<other>\d+))"
    r"(?: where k = (?P<k>NULL|\d+)|(?P<rest> in every (?:other )?partition)): (?P<because>.*)"
)


@dataclass(frozen=True)
class Asking:
    """A query of events that stand in one of these contexts, or in none, by their own or by another instant."""

    contexts: tuple[str, ...]
    outside: bool
    shift: int | None

    def relation(self, model: tg.ContextModel) -> tg.Relation:
        events = EVENTS if self.shift is None else EVENTS.with_(other=EVENTS.t + self.shift)
        stands = events.not_in_context if self.outside else events.in_context
        return stands(model, *self.contexts, at="t" if self.shift is None else "other")


@dataclass(frozen=True)
class Told:
    """A line: whether rows are let through, in which partition (`UNSEEN`: every other one), after which instant."""

    stands: bool
    key: int | None
    after: int | None
    before: bool
    because: str


def model_of(rng: random.Random) -> tg.ContextModel:
    """A few transitions of any kind, each asked for by rows with its number."""
    model = tg.context_model("Model", by="k", default="d", contexts=CONTEXTS[1:])
    for number in range(rng.randrange(3, 9)):
        rows, within = ASKED.where(ASKED.does == number), rng.sample(CONTEXTS, rng.randrange(1, 5))
        match rng.choice(("initiate", "initiate", "switch", "terminate")):
            case "initiate":
                model = model.initiate(rng.choice(CONTEXTS[1:]), when=rows, within=within)
            case "switch":
                model = model.switch(rng.choice(CONTEXTS), when=rows, within=within)
            case _:
                model = model.terminate(rng.choice(CONTEXTS[1:]), when=rows)
    return model


def asking(rng: random.Random) -> Asking:
    contexts = rng.sample(CONTEXTS, rng.choice((1, 1, 2, 3)))
    return Asking((*contexts,), rng.random() < 0.5, rng.choice((None, None, 0, -3, 2)))


def told(text: str) -> Iterator[Told]:
    label = ""
    for line in lines(text):
        found = SAID.fullmatch(line)
        assert found, line
        label = found["label"] or label
        key = UNSEEN if found["rest"] else None if found["k"] == "NULL" else int(found["k"])
        after = found["other"] or found["since"]
        yield Told(
            label != "suspended  ",
            key,
            None if after in (None, "ever") else int(after),
            bool(found["before"]),
            found["because"],
        )


def held_by_key(model: tg.ContextModel, rows: Sequence[Row]) -> dict[object, Held]:
    """What holds after all these transitions, by their meaning."""
    assert model.changes._fed_by is not None
    changes = evaluate(model.changes._fed_by.node, {"Asked": [*rows]})
    held: dict[object, Held] = {key: {"d": None} for key in (*KEYS, UNSEEN)}
    for key, context, change, _, began in sorted(changes, key=lambda row: (row[3], row[2])):
        if change == "start":
            held[key][str(context)] = began  # type: ignore[assignment]  # an instant
        else:
            del held[key][str(context)]
    return held


def check_because(because: str, held: Held, asked: Asking) -> None:
    """The contexts that a line names hold, or do not, and nothing is left out."""
    its = held.keys() & {*asked.contexts}
    if holds := re.fullmatch(r"(\w+(?: and \w+)*) holds?", because):
        assert {*holds[1].split(" and ")} == (its or held.keys())
        assert its or asked.contexts == ("d",)
        return
    found = re.fullmatch(r"(?:(\w) does not hold|none of (.+?) holds)(?:, (d) does|, (\w has held .*))?", because)
    assert found, because
    assert not its
    assert (found[1] or found[2]).split(", ") == sorted(asked.contexts, key=lambda context: context == "d")
    if found[4]:
        others = re.findall(r"(\w) has held since (\d+)", found[4])
        assert {context: int(began) for context, began in others} == held
    else:
        assert held.keys() == {"d"}
        assert (found[3] == "d") is ({*asked.contexts} != {*CONTEXTS[1:]})


def check(
    told_lines: Sequence[Told], held: Mapping[object, Held], passes: set[Row], asked: Asking, until: int
) -> Iterator[str]:
    """Yields of which kind each line is."""
    listed = [line.key for line in told_lines]
    unlisted = [UNSEEN, *(key for key in KEYS if key not in listed)]
    assert len({*listed}) == len(listed)
    assert UNSEEN in listed
    assert all(held[key] == {"d": None} for key in unlisted)
    for line in told_lines:
        first = -2 if line.after is None else line.after
        for key in unlisted if line.key == UNSEEN else [line.key]:
            # A row without a key is in no partition, nor in another one.
            if key is not None or line.key is None:
                assert {(key, at) in passes for at in range(first + 1, until + 2)} == {line.stands}, (line, key)
        if line.key is None:
            assert (line.because, line.after) == ("a row without a key is in no context", None)
            yield "no key"
            continue
        its = held[line.key]
        check_because(line.because, its, asked)
        telling = [its[context] for context in its.keys() & {*asked.contexts, "d"}]
        if not telling and asked.contexts == ("d",):
            telling = [*its.values()]
        if telling:
            assert not line.before
            assert line.after == (None if None in telling else min(began for began in telling if began is not None))
        else:
            assert line.after == until
            assert line.before is (asked.shift is None)
        yield f"{'stands' if line.stands else 'suspended'}, {'known' if telling else 'forgotten'}"
        yield f"{'own' if asked.shift is None else 'other'}, {'outside' if asked.outside else 'inside'}"


KINDS = {
    "no key",
    *(f"{one}, {two}" for one in ("stands", "suspended") for two in ("known", "forgotten")),
    *(f"{one}, {two}" for one in ("own", "other") for two in ("outside", "inside")),
}


@pytest.mark.parametrize("seed", shards(4, 2))
def test_what_is_said_of_contexts_is_what_they_mean(seed: int) -> None:
    """Every line, at every instant of which it speaks, in every partition. Transitions that are not final yet are not
    spoken of.
    """
    rng, met = random.Random(seed), Counter[str]()
    for _ in range(6):
        model, queries = model_of(rng), {f"Q{number}": asking(rng) for number in range(5)}
        program = tg.program(**{name: one.relation(model) for name, one in queries.items()})
        rows = [(rng.choice(KEYS), rng.randrange(24), rng.randrange(8)) for _ in range(rng.choice((3, 15, 40)))]
        waiting = rows
        with program.session() as session:
            for until in sorted(rng.sample(range(1, 24), 3)):
                batch = [row for row in waiting if row[1] <= until or row[2] < 3]
                waiting = [row for row in waiting if row[1] > until and row[2] >= 3]
                session.push("Asked", rng.sample(batch, len(batch)))
                session.advance("Asked", until)
                session.step()
                assert session.progress["Model"] == {"time": until}
                past: list[Row] = [row for row in rows if row[1] <= until]
                events: list[Row] = [(key, at) for key in (*KEYS, UNSEEN) for at in range(-4, until + 5)]
                meant = evaluate_program(program.definition, {"Asked": past, "Events": events})
                held = held_by_key(model, past)
                for name, asked in queries.items():
                    passes: set[Row] = {(row[0], row[-1]) for row in meant[name]}
                    met.update(check([*told(str(session.why(name)))], held, passes, asked, until))
    assert met.keys() == KINDS
