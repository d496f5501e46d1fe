"""Pages as a browser lays them out: headless Chromium looks at them in a frame of given widths, and says what it has
found.

Chromium is of the machine, not of the lock: no package of the registry has one. Pages are served to it from here, and
every other name leads nowhere, so what a page asks of elsewhere is found and never sent.
"""

from __future__ import annotations

import html
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Seconds for all pages of a call.
PATIENCE = 300.0

#: Each page in a frame, which takes one width after the other; `LOOK` is run at each and gives what is found there.
_HOST = """<!DOCTYPE html><meta charset="utf-8"><body style="margin: 0"><script>
const looks = LOOKS;
function settled(frame) {
  return new Promise(done => frame.contentWindow.requestAnimationFrame(() => frame.contentWindow.requestAnimationFrame(done)));
}
async function run() {
  const found = [];
  for (const [page, widths] of looks) {
    const frame = document.createElement("iframe");
    frame.style = `width: ${widths[0]}px; height: 900px; border: 0; visibility: hidden`;  // laid out, not painted
    await new Promise(done => { frame.onload = done; frame.src = page; document.body.append(frame); });
    const window = frame.contentWindow, document_ = frame.contentDocument;
    for (const width of widths) {
      frame.style.width = `${width}px`;
      await settled(frame);
      const asked = window.performance.getEntriesByType("resource").map(entry => entry.name);
      let told;
      try { told = await (LOOK)(window, document_, () => settled(frame)); } catch (error) { told = {error: String(error)}; }
      found.push({page, width, asked, told});
    }
    frame.remove();
  }
  await fetch("/__found", {method: "POST", body: JSON.stringify(found)});
}
run();
</script>"""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found on a page at a width; `asked`: the addresses that it loaded, or tried to."""

    page: str
    width: int
    asked: tuple[str, ...]
    told: Any


def chromium() -> str | None:
    """The browser of this machine."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def look_at(
    folder: Path, looks: Sequence[tuple[str, Sequence[int]]], script: str, *, without: str | None = None
) -> list[Look]:
    """What a function of JavaScript gives for pages of a folder, each at some widths in pixels.

    `script`: `async (window, document, settled) => value`; `settled()` waits until the page is laid out anew.
    `without`: the name of a file that the pages do not get.
    """
    found: queue.Queue[list[Mapping[str, Any]]] = queue.Queue()
    host = _HOST.replace("LOOKS", json.dumps(list(looks)), 1).replace("LOOK)", f"{script})", 1)
    # What the browser started may still write to its profile, and be gone a moment later.
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with _served(folder, host, without, found) as port, profiles as profile:
        command = [
            *_browser(profile),
            "--window-size=2000,1000",
            "--remote-debugging-port=0",  # without it a headless browser ends at once
            f"http://127.0.0.1:{port}/__host.html",
        ]
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=nowhere, stderr=nowhere, start_new_session=True) as process:
            try:
                told = found.get(timeout=PATIENCE)
            finally:
                process.terminate()
                process.wait(timeout=20)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    own = f"http://127.0.0.1:{port}/"
    return [
        Look(
            one["page"],
            one["width"],
            tuple(name for name in one["asked"] if not name.startswith((own, "data:"))),
            one["told"],
        )
        for one in told
    ]


def look_from_disk(page: Path, script: str, width: int) -> Any:
    """What a function of JavaScript gives for a page that is opened as a file, with the script in a copy beside it.

    `script`: `async () => value`. A browser lets no other page look into a file.
    """
    tell = f"({script})().then(told => {{ document.documentElement.dataset.told = JSON.stringify(told); }})"
    copy = page.with_name("__look.html")
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    try:
        copy.write_text(f"{page.read_text()}<script>window.onload = () => {tell};</script>", encoding="utf-8")
        with profiles as profile:
            # Time is the page's own: it stands while something is read, and 20 s of nothing to do are over at once.
            more = [f"--window-size={width},900", "--virtual-time-budget=20000", "--dump-dom", copy.as_uri()]
            shown = subprocess.run(
                [*_browser(profile), *more], capture_output=True, text=True, timeout=PATIENCE, check=True
            )
    finally:
        copy.unlink()
    told = re.search(r'<html[^>]* data-told="([^"]*)"', shown.stdout)
    assert told is not None, shown.stdout[-2000:]
    return json.loads(html.unescape(told[1]))


def _browser(profile: str) -> list[str]:
    """The command that starts it; what it keeps lies in `profile`, and names lead nowhere."""
    browser = chromium()
    assert browser is not None
    return [
        browser,
        "--headless",
        "--no-sandbox",  # in a container nobody but root may be there
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]


@contextmanager
def _served(folder: Path, host: str, without: str | None, found: queue.Queue[list[Mapping[str, Any]]]) -> Iterator[int]:
    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            if self.path.rsplit("/", 1)[-1] == without:
                self.send_error(404)
                return
            if self.path != "/__host.html":
                with suppress(ConnectionError):  # the browser ends when it has told what it has found
                    super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(host.encode())

        def do_POST(self) -> None:
            found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def end_headers(self) -> None:
            self.send_header("Cache-Control", "max-age=3600")  # all pages of the manual share scripts and styles
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
