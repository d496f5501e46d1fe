"""The manual, timelines and a notebook as a browser shows them: nothing is wider than its column, nothing comes from
elsewhere.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import sub
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import tidegate as tg
from tests.docs.browser import chromium, look_at, look_from_disk
from tests.docs.built_manual import BuiltManual

WIDTHS = (1280, 1920, 500, 390)
pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine: install the package chromium"),
    pytest.mark.xdist_group("browser"),
]

#: What sticks out of the column, box or text, but for what lies in a frame that scrolls; words of code that a table
#: breaks, such as parts of paths; and whether the page itself scrolls sideways.
WIDER = """async (window, document) => {
  const column = document.querySelector('COLUMN');
  const right = Math.min(column.getBoundingClientRect().right, window.innerWidth) + 1;
  const scrolls = one => ['auto', 'scroll', 'hidden'].includes(window.getComputedStyle(one).overflowX);
  const inside = one => {
    for (let at = one.parentElement; at && at !== column; at = at.parentElement) { if (scrolls(at)) return true; }
    return false;
  };
  const wide = [...column.querySelectorAll('*')].filter(one => {
    const box = one.getBoundingClientRect();
    if (box.width === 0 || box.left + Math.max(box.width, one.scrollWidth) <= right) { return false; }
    const reaches = box.right > right || one.clientWidth > 0 && !scrolls(one);
    return reaches && window.getComputedStyle(one).position !== 'absolute' && !inside(one);
  });
  const told = wide.map(one => one.tagName + ': ' + one.textContent.trim().slice(0, 60));
  for (const code of column.querySelectorAll('td code')) {
    const texts = document.createTreeWalker(code, window.NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/\\w+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (range.getClientRects().length > 1) { told.push('broken: ' + word[0]); }
      }
    }
  }
  if (document.documentElement.scrollWidth > window.innerWidth + 1) { told.push('the page scrolls sideways'); }
  return told.slice(0, 5);
}"""


def test_no_page_of_the_manual_is_wider_than_its_column_or_asks_for_anything_elsewhere(
    built_manual: BuiltManual,
) -> None:
    found = [page for page in built_manual.place.rglob("*.html") if page.name != "404.html"]
    of_names = [page for page in found if page.parent.name == "api"]
    largest = sorted(of_names, key=lambda page: page.stat().st_size)[-10:]  # the others are alike, and small
    assert len(of_names) > 60
    pages = sorted(
        str(page.relative_to(built_manual.place)) for page in found if page not in of_names or page in largest
    )
    assert len(pages) > 40
    looks = look_at(
        built_manual.place,
        [(f"/{page}", WIDTHS) for page in pages],
        WIDER.replace("COLUMN", "article"),
        without="search_index.json",  # each page would read it anew, which took most of the time
    )
    assert len(looks) == len(pages) * len(WIDTHS)
    assert {(one.page, one.width): one.told for one in looks if one.told} == {}
    assert {one.page: one.asked for one in looks if one.asked} == {}


def test_the_manual_is_searched_where_its_pages_are_opened_from_disk(built_manual: BuiltManual) -> None:
    told = look_from_disk(
        built_manual.place / "how-to" / "install.html",
        """async () => {
          const field = document.querySelector('[data-md-component=search-query]');
          document.querySelector('#__search').click();  // as focus does; a browser without a window gives none
          field.value = 'tumbling';
          field.dispatchEvent(new Event('keyup'));
          const found = () => [...document.querySelectorAll('.md-search-result__link')].map(one => one.href);
          while (found().length === 0) { await new Promise(done => setTimeout(done, 50)); }
          const asked = window.performance.getEntriesByType('resource').map(entry => entry.name);
          return {found: found(), elsewhere: asked.filter(name => !name.startsWith('file:') && !name.startsWith('data:')),
                  wide: field.getBoundingClientRect().width};
        }""",
        1280,
    )
    manual = built_manual.place.as_uri()
    found = [name.removeprefix(f"{manual}/").partition("?")[0] for name in told["found"]]
    assert "reference/api/tumbling.html" in found
    of_decisions = [name.startswith("decisions/") for name in found]
    assert of_decisions == sorted(of_decisions), "what is about the project comes last"
    assert told["elsewhere"] == []
    assert told["wide"] > 100


def test_pictures_and_code_of_the_manual_are_read_without_a_glass(built_manual: BuiltManual) -> None:
    pages = ["index.html", "tutorial.html", "explanation/progress-and-finality.html", "explanation/fog.html"]
    looks = look_at(
        built_manual.place,
        [(f"/{page}", [1280, 390]) for page in pages],
        """async (window, document) => {
          const pictures = [...document.querySelectorAll('article p > img')];
          const code = [...document.querySelectorAll('article pre > code')][0];
          const letter = document.createElement('span');
          letter.textContent = 'x'.repeat(100);
          if (code) { code.prepend(letter); }
          return {shrunk: pictures.map(one => one.getBoundingClientRect().width / one.naturalWidth),
                  room: code ? (code.clientWidth - 2 * parseFloat(window.getComputedStyle(code).paddingLeft)) / letter.getBoundingClientRect().width : 1};
        }""",
        without="search_index.json",
    )
    shrunk = {(one.page, one.width): part for one in looks for part in one.told["shrunk"]}
    assert len(shrunk) >= 6
    assert {where: part for where, part in shrunk.items() if part < 0.7} == {}
    assert {one.page: one.told["room"] for one in looks if one.width == 1280 and one.told["room"] < 1} == {}


def test_a_phone_shows_that_a_table_or_a_picture_scrolls(built_manual: BuiltManual) -> None:
    looks = look_at(
        built_manual.place,
        [(f"/{page}", [390]) for page in ("index.html", "reference/terms.html")],
        """async (window, document) => {
          const moves = one => one.scrollWidth > one.clientWidth + 1;
          const tables = [...document.querySelectorAll('article table')].filter(moves);
          const pictures = [...document.querySelectorAll('article p:has(> img)')].filter(moves);
          return {tables: tables.map(one => window.getComputedStyle(one).backgroundAttachment),
                  pictures: pictures.map(one => window.getComputedStyle(one, '::after').content)};
        }""",
        without="search_index.json",
    )
    told = {one.page: one.told for one in looks}
    shadows = told["/reference/terms.html"]["tables"]
    assert shadows
    assert all(one.endswith("local, local, scroll, scroll") for one in shadows)
    assert told["/index.html"]["pictures"] == ['"The picture scrolls →"']


def test_what_is_too_wide_and_what_is_asked_for_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(
        '<meta name="viewport" content="width=device-width"><article style="width: 300px">'
        "<pre>" + "x" * 500 + '</pre><div style="overflow-x: auto"><pre>' + "y" * 500 + "</pre></div>"
        '<table><td><code style="display: inline; word-break: break-all">' + "z" * 99 + "</code></table></article>"
        '<img src="http://example.invalid/picture.png">'
    )
    (found,) = look_at(tmp_path, [("/bad.html", [390])], WIDER.replace("COLUMN", "article"))
    assert [told.split(":")[0] for told in found.told] == ["PRE", "broken", "the page scrolls sideways"]
    assert found.asked == ("http://example.invalid/picture.png",)


def drawn(tmp_path: Path) -> Path:
    states = tg.stream("S", "k bigint, t timestamp, load bigint", progress="t")
    situations = states.partition_by("k").derive(Busy=tg.situation(states.load > 5), Idle=tg.situation(states.load < 5))
    program = tg.program(
        Busy=situations.Busy, Idle=situations.Idle, Hits=tg.match(situations.Busy.meets(situations.Idle), within="1h")
    )
    rows = [
        (k, f"2026-01-01T00:{minute:02}Z", load) for k in (1, 2) for minute, load in enumerate([1, 9, 7, 2, 8, 1, 9])
    ]
    found = program.run({"S": rows})
    tables = {name: found[name].arrow() for name in ("Busy", "Idle")}
    tg.timeline(tables, found["Hits"].arrow(), partition_by="k", title="Loads").save(tmp_path / "timeline.html")
    return tmp_path


def test_a_timeline_zooms_says_what_a_bar_is_and_finds_a_partition(tmp_path: Path) -> None:
    (found,) = look_at(
        drawn(tmp_path),
        [("/timeline.html", [1280])],
        """async (window, document, settled) => {
          const bars = () => [...document.querySelectorAll('svg.timeline rect[data-w]')].map(one => one.getBoundingClientRect().width);
          const before = bars();
          const chart = document.querySelector('svg.timeline'), box = chart.getBoundingClientRect();
          const wheel = {deltaY: -100, clientX: box.left + box.width / 2, clientY: box.top + 40, bubbles: true, cancelable: true};
          const scrolled = new window.WheelEvent('wheel', wheel);
          chart.dispatchEvent(scrolled);
          wheel.ctrlKey = true;
          for (let k = 0; k < 3; k++) { chart.dispatchEvent(new window.WheelEvent('wheel', wheel)); }
          await settled();
          const zoomed = bars();
          chart.dispatchEvent(new window.MouseEvent('dblclick', {bubbles: true}));
          await settled();
          const field = document.querySelector('input.timelines');
          field.value = 'k = 2';
          field.dispatchEvent(new window.Event('input', {bubbles: true}));
          await settled();
          const shown = [...document.querySelectorAll('[data-partition]')].filter(one => one.offsetHeight > 0);
          return {
            grown: Math.max(...zoomed) / Math.max(...before), back: Math.max(...bars()) / Math.max(...before),
            shown: shown.map(one => one.dataset.partition),
            titles: [...document.querySelectorAll('svg.timeline title')].map(one => one.textContent),
            taken: scrolled.defaultPrevented, scrolls: document.documentElement.scrollWidth > window.innerWidth,
          };
        }""",
    )
    told = found.told
    assert told["grown"] == pytest.approx(1.25**3, rel=0.01)
    assert told["back"] == pytest.approx(1.0, rel=0.01)
    assert told["shown"] == ["k = 2"]
    assert any("detected" in title and "ended" in title for title in told["titles"])
    assert any("(2m)" in title for title in told["titles"])
    assert not told["scrolls"]
    assert not told["taken"], "without Ctrl the page scrolls"
    assert found.asked == ()


def test_many_matches_are_paler_until_one_zooms(tmp_path: Path) -> None:
    readings = tg.stream("R", "t bigint, x bigint", progress="t")
    found = readings.partition_by().derive(A=tg.situation(readings.x == 1), B=tg.situation(readings.x == 2))
    program = tg.program(A=found.A, B=found.B, M=found.match(found.A.meets(found.B), within=9))
    results = program.run({"R": [(t, t % 3) for t in range(600)]})
    tg.timeline({"A": results["A"], "B": results["B"]}, results["M"], most_matches=200).save(tmp_path / "many.html")
    (look,) = look_at(
        tmp_path,
        [("/many.html", [1280])],
        """async (window, document) => {
          const chart = document.querySelector('svg.timeline'), line = chart.querySelector('line.match');
          const opacity = () => Number(line.getAttribute('stroke-opacity')), before = opacity(), box = chart.getBoundingClientRect();
          for (let k = 0; k < 20; k++) {
            chart.dispatchEvent(new window.WheelEvent('wheel', {
              ctrlKey: true, deltaY: -100, clientX: box.left + box.width * 0.2, clientY: box.top + 40, bubbles: true, cancelable: true}));
          }
          const all = chart.querySelectorAll('line.match').length;
          return {all: all, before: before, zoomed: opacity()};
        }""",
    )
    assert look.told["all"] > 150
    assert look.told["before"] == pytest.approx(40 / look.told["all"], abs=0.01)
    assert look.told["zoomed"] == 1


def test_the_axis_of_a_timeline_is_marked_in_every_part_of_it(tmp_path: Path) -> None:
    first = datetime(2025, 3, 1, 5, tzinfo=UTC)
    days = [first + timedelta(days=n) for n in range(0, 240, 2)]
    long = [datetime(year, 1, 1, tzinfo=UTC) for year in (1, 1969, 1970, 9998)]
    given = {
        "days": (pa.Table.from_pylist([{"ts": at, "te": at + timedelta(hours=3)} for at in days]), "America/New_York"),
        "years": (pa.Table.from_pylist([{"ts": at, "te": at + timedelta(days=99)} for at in long]), "UTC"),
        "numbers": (pa.table({"ts": [-(2**61), 3, 2**61], "te": [-(2**61) + 1, 7, 2**61 + 1]}), "UTC"),
    }
    for name, (table, zone) in given.items():
        tg.timeline({"On": table}, tz=zone).save(tmp_path / f"{name}.html")
    looks = look_at(
        tmp_path,
        [(f"/{name}.html", [1280]) for name in given],
        """async (window, document, settled) => {
          const chart = document.querySelector('svg.timeline'), found = [];
          const marks = () => [...chart.querySelectorAll('text.mark')].filter(one => one.getAttribute('visibility') !== 'hidden')
            .map(one => [one.firstChild.data, Number(one.dataset.x), one.querySelector('title').textContent]);
          const box = chart.getBoundingClientRect();
          for (let k = 0; k < 40; k++) {
            found.push(marks());
            chart.dispatchEvent(new window.WheelEvent('wheel', {
              ctrlKey: true, deltaY: -100, clientX: box.left + box.width * 0.3, clientY: box.top + 40, bubbles: true, cancelable: true}));
          }
          return found;
        }""",
    )
    for look in looks:
        shown = look.told
        assert [len(marks) >= 2 for marks in shown] == [True] * len(shown), look.page
        assert all(len({label for label, _, _ in marks}) == len(marks) for marks in shown), look.page
        for marks in shown:  # each where it says that it is
            if look.page == "/days.html":
                (_, x, a), (_, y, b) = marks[:2]
                new_york = ZoneInfo("America/New_York")
                apart = (datetime.fromisoformat(whole).replace(tzinfo=new_york).astimezone(UTC) for whole in (a, b))
                wide = (y - x) * (days[-1] + timedelta(hours=3) - first) / 880
                assert abs(-sub(*apart) - wide) < timedelta(seconds=1)
    assert [label for label, _, _ in looks[0].told[0]][:2] == ["2025-03", "2025-04"]
    assert looks[1].told[0][0][0] == "2000"


def test_the_name_of_a_match_shows_it_and_a_search_that_finds_none_says_so(tmp_path: Path) -> None:
    (found,) = look_at(
        drawn(tmp_path),
        [("/timeline.html", [1280])],
        """async (window, document, settled) => {
          const name = [...document.querySelectorAll('svg.timeline text')].find(one => one.textContent === 'match 2');
          const y = Number(name.getAttribute('y')) - 11;
          const bars = () => [...name.parentElement.querySelectorAll('rect[data-w]')].filter(one => Number(one.getAttribute('y')) === y)
            .map(one => one.getBoundingClientRect().width).reduce((a, b) => a + b);
          const before = bars();
          name.dispatchEvent(new window.MouseEvent('click', {bubbles: true}));
          await settled();
          const field = document.querySelector('input.timelines'), said = [];
          for (const text of ['nobody', 'k = 1']) {
            field.value = text;
            field.dispatchEvent(new window.Event('input', {bubbles: true}));
            said.push(field.nextElementSibling.textContent);
          }
          return {grown: bars() / before, part: bars() / (name.parentElement.clientWidth - 128), said};
        }""",
    )
    assert found.told["grown"] > 2
    assert found.told["part"] == pytest.approx(1 / 1.2, rel=0.02)
    assert found.told["said"] == ["none that is drawn has this in its name", ""]


def test_a_timeline_is_read_on_every_screen(tmp_path: Path) -> None:
    looks = look_at(drawn(tmp_path), [("/timeline.html", WIDTHS)], WIDER.replace("COLUMN", "body"))
    assert {one.width: one.told for one in looks if one.told} == {}


def test_a_timeline_is_moved_zoomed_and_asked_with_fingers(tmp_path: Path) -> None:
    (found,) = look_at(
        drawn(tmp_path),
        [("/timeline.html", [390])],
        """async (window, document, settled) => {
          const chart = document.querySelector('svg.timeline'), box = chart.getBoundingClientRect();
          const bars = () => [...chart.querySelectorAll('rect[data-w]')].map(one => one.getBoundingClientRect());
          const touch = (kind, id, x, target) => (target || chart).dispatchEvent(new window.PointerEvent(kind, {
            pointerId: id, pointerType: 'touch', clientX: box.left + x, clientY: box.top + 40, bubbles: true, cancelable: true}));
          const tip = () => (document.querySelector('.timeline-tip') || {}).textContent;
          const plot = box.width - 128, before = bars();
          touch('pointerdown', 1, 120 + 0.25 * plot); touch('pointerdown', 2, 120 + 0.5 * plot);
          touch('pointermove', 1, 120); touch('pointermove', 2, 120 + plot);
          touch('pointerup', 1, 120); touch('pointerup', 2, 120 + plot);
          await settled();
          const zoomed = bars(), afterZoom = tip();
          touch('pointerdown', 1, 200); touch('pointermove', 1, 250); touch('pointerup', 1, 250);
          await settled();
          const moved = bars(), afterMove = tip();
          chart.dispatchEvent(new window.MouseEvent('dblclick', {bubbles: true}));
          await settled();
          const first = bars()[0];
          touch('pointerdown', 1, first.left - box.left + 5); touch('pointerup', 1, first.left - box.left + 5);
          const said = tip(), shown = document.querySelector('.timeline-tip').getBoundingClientRect();
          touch('pointerdown', 1, 5, document.body);
          return {grown: zoomed[0].width / before[0].width, by: moved[0].left - zoomed[0].left, afterZoom, afterMove, said,
                  left: shown.left, right: shown.right, hidden: tip() === undefined,
                  taken: window.getComputedStyle(chart).touchAction};
        }""",
    )
    told = found.told
    assert told["grown"] == pytest.approx(4, rel=0.01)
    assert told["by"] == pytest.approx(50, abs=0.5)
    assert "afterZoom" not in told, "two fingers are no tap"
    assert "afterMove" not in told, "nor is a finger that moves"
    assert told["said"].startswith("Busy from 2026-01-01 00:01:00+00:00 to 2026-01-01 00:03:00+00:00 (2m)")
    assert told["left"] >= 0
    assert told["right"] <= 390
    assert told["hidden"], "the next tap takes it away"
    assert told["taken"] == "pan-y", "the page still scrolls"


def test_a_timeline_fits_a_phone_with_letters_that_are_read(tmp_path: Path) -> None:
    looks = look_at(
        drawn(tmp_path),
        [("/timeline.html", WIDTHS)],
        """async (window, document) => {
          const chart = document.querySelector('svg.timeline'), frame = chart.parentElement;
          const labels = [...chart.querySelectorAll('text[data-x]')].filter(one => one.getAttribute('visibility') !== 'hidden');
          const boxes = labels.map(one => one.getBoundingClientRect());
          return {sideways: frame.scrollWidth > frame.clientWidth, filled: chart.getBoundingClientRect().width / frame.clientWidth,
                  letters: Number.parseFloat(window.getComputedStyle(labels[0]).fontSize) * chart.getBoundingClientRect().width / chart.viewBox.baseVal.width,
                  labels: labels.length, over: boxes.filter((box, k) => k > 0 && box.left < boxes[k - 1].right).length};
        }""",
    )
    for look in looks:
        assert not look.told["sideways"], look
        assert look.told["filled"] == pytest.approx(1, abs=0.01)
        assert look.told["letters"] == pytest.approx(14 if look.width < 600 else 12, rel=0.01)
        assert look.told["labels"] >= 2
        assert look.told["over"] == 0


def test_the_picture_of_a_plan_keeps_its_size_in_a_narrow_notebook(tmp_path: Path) -> None:
    orders = tg.stream("Orders", "id bigint, ordered timestamp", progress="ordered")
    daily = orders.group_by(day=tg.floor(orders.ordered, "1d")).agg(n=tg.count())
    style = '<meta name="viewport" content="width=device-width"><style>svg { max-width: 100%; height: auto }</style>'
    (tmp_path / "plan.html").write_text(style + tg.program(Daily=daily).explain()._repr_html_())
    look = """async (window, document) => {
      const picture = document.querySelector('svg');
      return {drawn: picture.getBoundingClientRect().width, wide: Number(picture.getAttribute('width')),
              sideways: document.documentElement.scrollWidth > window.innerWidth};
    }"""
    (found,) = look_at(tmp_path, [("/plan.html", [390])], look)
    assert found.told["drawn"] == found.told["wide"] > 390
    assert not found.told["sideways"]
