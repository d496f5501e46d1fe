"""Slips in queues between threads and the batches in the background."""

from __future__ import annotations

from tools.planted.bugs import Group, bug

QUEUE = "runtime/engines/embedded/input_queue.py"
BACKGROUND = "runtime/engines/embedded/background.py"
GROUP = Group(
    "background",
    ("tests/runtime/test_background.py",),
    (
        bug(
            "a queue has room for any number of rows",
            QUEUE,
            "return waiting == 0 or waiting + entry.rows <= self.most_rows",
            "return True",
        ),
        bug(
            "an empty queue takes no large push",
            QUEUE,
            "return waiting == 0 or waiting + entry.rows <= self.most_rows",
            "return waiting + entry.rows <= self.most_rows",
        ),
        bug(
            "progress passes rows that were pushed before it",
            QUEUE,
            "isinstance(last := before[-1][-1], QueuedProgress)",
            "isinstance(last := before[0][-1], QueuedProgress)",
        ),
        bug(
            "progress that is told later goes back",
            QUEUE,
            "self.told[key] = max(ticks, self.told.get(key, ticks))",
            "self.told[key] = ticks",
        ),
        bug(
            "progress is never merged",
            QUEUE,
            "if before and isinstance(last := before[-1][-1], QueuedProgress):\n                last.merge(advances)\n            else:",
            "if True:",
        ),
        bug(
            "one stream's queue goes first",
            QUEUE,
            "self.entries[name][0][0]",
            "name",
        ),
        bug(
            "rows of a batch count as waiting",
            QUEUE,
            "self.rows[stream] -= entry.rows",
            "pass",
        ),
        bug(
            "a push that waits for room waits for the batch's time",
            QUEUE,
            "return self.closed or self.blocked() > 0 or",
            "return self.closed or",
        ),
        bug(
            "a refused push waits for the batch's time",
            QUEUE,
            "                self.want()\n",
            "                pass\n",
        ),
        bug(
            "a session whose background failed stays open",
            "runtime/engines/embedded/session.py",
            "        finally:\n            self._batches.close()",
            "        finally:\n            pass\n        self._batches.close()",
        ),
        bug(
            "small pushes overtake a large one",
            QUEUE,
            "(line[0] is entry and self._has_room(entry))",
            "self._has_room(entry)",
        ),
        bug(
            "what was taken is lost where no batch can be made of it",
            BACKGROUND,
            "(*self._in_hand, *self._queue.rest())",
            "self._queue.rest()",
        ),
        bug(
            "what a callback pushes is taken for its batch's",
            "runtime/engines/embedded/batches.py",
            "self.is_running = True",
            "self.is_running = False",
        ),
        bug(
            "rows of a committed batch wait once its callback failed",
            "runtime/engines/embedded/batches.py",
            "                given.read()\n                setup.read(reading)\n        setup",
            "                setup.read(reading)\n        given.read()\n        setup",
        ),
        bug(
            "a frame is what it is when a batch reads it",
            "runtime/engines/embedded/pending_input.py",
            "rows = rows.copy()",
            "pass",
        ),
        bug(
            "parts of any size are put together",
            "runtime/ingest/raw_rows.py",
            "if waiting and size + _bytes_of(part) > _TOGETHER_BYTES:",
            "if False:",
        ),
        bug(
            "a flush waits for the batch's time",
            QUEUE,
            "or self.wanted > self.taken",
            "",
        ),
        bug(
            "what is not drained is run all the same",
            QUEUE,
            "while self._waits() and size < rows and not self.stopped:",
            "while self._waits() and size < rows:",
        ),
        bug(
            "what waits is lost at the end",
            BACKGROUND,
            "(*self._in_hand, *self._queue.rest())",
            "self._in_hand",
        ),
        bug(
            "a flush is over once rows are taken",
            BACKGROUND,
            "lambda: self._committed >= wanted or self._has_ended",
            "lambda: self._queue.taken >= wanted or self._has_ended",
        ),
        bug(
            "a failure is told to nobody",
            BACKGROUND,
            "            self._error = error\n",
            "            pass\n",
        ),
        bug(
            "a callback waits for room that only it can make",
            BACKGROUND,
            "wait = 0.0 if threading.current_thread() is self._thread else self._options.wait",
            "wait = self._options.wait",
        ),
        bug(
            "nothing happens unless rows are pushed",
            BACKGROUND,
            "if entries or self._session.due:",
            "if entries:",
        ),
        bug(
            "another thread may use a session that runs in the background",
            "runtime/engines/embedded/batches.py",
            "if self.thread is not None and self.thread is not current_thread():",
            "if False:",
        ),
    ),
)
