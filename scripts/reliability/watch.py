"""A server under attack, watched: whether it lives, answers others, computes, and holds memory.

Used by `hostile.py` and `extremes.py`. Sends two requests of its own, a durable write and a count
of what was written, and reads the rest from `/proc`; so it runs on Linux only.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from server import Server

# How long threads may go on with work of their own (a flush, a merge), and memory may take to be
# given back, for each second of patience.
CALM_S = 20.0
# A thread that computes for more of a moment than this is busy.
BUSY = 0.5
# How often the threads are looked at within that moment.
LOOKS = 4
# What an allocator keeps of a few requests, whatever there was before.
KEPT_KIB = 48 << 10
TICK = os.sysconf("SC_CLK_TCK")
# Between two looks at what the disk takes.
PAUSE_S = 0.01
# Threads that work for what is stored, not for one request.
STORING = ("arc-flush", "arc-compact", "arc-segment", "arc-commit")


class Thread(NamedTuple):
    """A thread: its name, its time on a processor, and whether it waits for nothing else."""

    name: str
    ticks: int
    is_runnable: bool


class Watch:
    """The threads and the memory of the process, as the kernel counts them."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def resident_kib(self) -> int:
        return self.server.status_kib("VmRSS")

    def threads(self) -> dict[str, Thread]:
        """Returns the threads by number."""
        threads = {}
        for task in pathlib.Path(f"/proc/{self.server.process.pid}/task").iterdir():
            try:
                head, _, rest = (task / "stat").read_text().rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            spent, is_runnable = int(fields[11]) + int(fields[12]), fields[0] in "RD"
            threads[task.name] = Thread(head.partition("(")[2], spent, is_runnable)
        return threads

    def busy(self, seconds: float = 0.4) -> list[str]:
        """Returns the threads that compute now, or would if a processor were free."""
        looks, began = [self.threads()], time.monotonic()
        for _ in range(LOOKS):
            time.sleep(seconds / LOOKS)
            looks.append(self.threads())
        ticks = (time.monotonic() - began) * TICK
        always = [number for number in looks[0] if all(number in look for look in looks)]
        return [
            looks[-1][number].name
            for number in always
            if looks[-1][number].ticks - looks[0][number].ticks > BUSY * ticks
            or all(look[number].is_runnable for look in looks)
        ]


class Disk:
    """What the disk takes by itself to sync a few bytes, beside something that is measured."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.slowest_s = folder, 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        with tempfile.TemporaryFile(dir=self.folder) as file:
            while not self.ended.wait(PAUSE_S):
                file.write(b"a point")
                file.flush()
                began = time.monotonic()
                os.fsync(file.fileno())
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def __enter__(self) -> Disk:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


class Health:
    """Probes of one server, and the problems that they find."""

    def __init__(self, server: Server, database: str, patience_s: float) -> None:
        self.server, self.watch = server, Watch(server)
        self.database, self.patience_s = database, patience_s
        self.acknowledged = 0
        self.slowest_s = 0.0
        # Lines of the log that were looked at.
        self.read = 0

    def move_to(self, server: Server) -> None:
        """Goes on with a new process over the same directory."""
        self.server, self.watch, self.read = server, Watch(server), 0

    def panics(self) -> list[str]:
        """Returns the panics since the last look: each is a fault, whoever caught it."""
        lines = self.server.log[self.read :]
        self.read += len(lines)
        return [line.strip() for line in lines if '"message":"panic: ' in line]

    def write(self) -> bool:
        """Writes a point of its own for good; returns whether it was acknowledged."""
        number = self.acknowledged
        line = f"probe,n={number % 7} v={number}i {number + 1}".encode()
        path = f"/write?db={self.database}"
        status, _ = self.server.request("POST", path, line, x_arc_durability="disk")
        self.acknowledged += status == 204
        return status == 204

    def count(self) -> bool:
        """Counts what was written; asks again while the limit of the server, not ours, ends it."""
        until = time.monotonic() + self.patience_s
        while True:
            try:
                rows = self.server.sql("SELECT count(*) FROM probe", self.database)
            except RuntimeError as error:
                # Beside others on two cores one second may be too short; being patient is not.
                if "query timed out" in str(error) and time.monotonic() < until:
                    continue
                raise
            return rows == [[self.acknowledged]]

    def probe(self) -> list[str]:
        """Returns which of a write and a query was not answered well, and in time."""
        problems = self.panics()
        for name, send in [("write", self.write), ("query", self.count)]:
            with Disk(self.server.data_dir.parent) as disk:
                began, done = time.monotonic(), run_within(send, self.patience_s)
                took_s = time.monotonic() - began
            if name == "write":
                # A disk that stands still for a moment is no fault of the server.
                took_s -= disk.slowest_s
            if took_s > self.patience_s:
                problems.append(f"{name} answered after {took_s:.1f} s: {done}")
            elif done != [True]:
                problems.append(f"{name}: {done}")
            self.slowest_s = max(self.slowest_s, took_s)
        return problems

    def calm(self, before_kib: float, working_s: float | None = None) -> list[str]:
        """Returns which threads stay busy, and how much memory stays taken.

        Threads that work for a request have `working_s`, all others and memory `CALM_S` for each
        second of patience.
        """
        began, calm_s = time.monotonic(), CALM_S * self.patience_s
        working_s = calm_s if working_s is None else working_s
        most = before_kib * 1.1 + KEPT_KIB
        while True:
            busy, resident = self.watch.busy(), self.watch.resident_kib()
            if not busy and resident <= most:
                return []
            took_s = time.monotonic() - began
            late = [name for name in busy if took_s > calm_s or name not in STORING]
            if took_s > calm_s or (late and took_s > working_s):
                problems = [f"busy: {', '.join(late)}"] if late else []
                return problems + ([grown(resident, before_kib)] if resident > most else [])


def grown(resident_kib: int, before_kib: float) -> str:
    return f"{resident_kib >> 10} MiB resident, {before_kib / 1024:.0f} before"


def run_within(send: Callable[[], bool], seconds: float) -> list[bool | str]:
    """Runs `send` beside this thread; returns its result, or nothing if it takes too long.

    Waits for it for a minute more, so that the next probe is alone.
    """
    done: list[bool | str] = []

    def run() -> None:
        try:
            done.append(send())
        except Exception as error:  # noqa: BLE001
            done.append(str(error)[:200])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        thread.join(60)
    return done
