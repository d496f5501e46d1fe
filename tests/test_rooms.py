"""The rooms of the package: imports go one way, no circles, no crowds, and the picture of them is today's."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from tools import rooms


def test_imports_between_rooms_go_one_way() -> None:
    assert rooms.wrong_ways() == []


def test_no_module_imports_the_package_as_users_do() -> None:
    assert rooms.front_imports() == []


def test_folders_are_entered_by_their_entrance() -> None:
    assert rooms.side_doors() == []


def test_no_modules_import_each_other() -> None:
    assert rooms.circles() == []


def test_no_folder_is_a_crowd() -> None:
    assert rooms.crowds() == []


def test_the_picture_of_the_rooms_is_todays() -> None:
    page = (rooms.ROOT / "CONTRIBUTING.md").read_text()
    assert page == rooms.with_picture(page), "run python tools/rooms.py --write"


def test_each_kind_of_problem_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, batch, stray = "tidegate.runtime.plan.steps", "tidegate.runtime.batch.loop", "tidegate.runtime.new.thing"
    graph: nx.DiGraph[str] = nx.DiGraph([(plan, batch), (batch, plan), (stray, plan)])
    monkeypatch.setattr(rooms, "imports", lambda: graph)
    assert rooms.wrong_ways() == [
        f"{stray} stands in no room",
        f"{plan} imports {batch}, of a room that comes later",
    ]
    assert rooms.circles() == [f"a circle of {batch}, {plan}"]
    graph.add_edges_from((batch, f"tidegate.runtime.eval.small.{name}") for name in ("increment", "joins"))
    assert rooms.side_doors() == [
        f"{batch} imports tidegate.runtime.eval.small.joins, not tidegate.runtime.eval.small.increment"
    ]
    monkeypatch.setattr(rooms, "MOST_FILES", 1)
    assert "runtime/eval/aggregates has 11 modules, more than 1" in rooms.crowds()


def test_an_import_of_the_package_itself_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "import tidegate.algebra.nodes\nfrom tidegate.version import VERSION\nfrom tidegate import stream\n"
    )
    monkeypatch.setattr(rooms, "modules", lambda: {"tidegate.runtime.x": file})
    assert rooms.front_imports() == ["tidegate.runtime.x imports tidegate.stream, not the module where it stands"]
    file.write_text("def f():\n    import tidegate\n")
    assert rooms.front_imports() == ["tidegate.runtime.x imports tidegate, not the module where it stands"]


def test_what_is_imported_for_type_checkers_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import a\nif TYPE_CHECKING:\n    import b\nelse:\n    import c\ndef f():\n    from d import e\n")
    assert sorted(rooms.imported(file)) == ["a", "c", "d.e"]
