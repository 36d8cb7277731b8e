#!/usr/bin/env python3
"""Readers beside a writer that is killed again and again: is each answer one that the writer could have given?

    python scripts/reliability/readers.py --readers 8 --kills 20 --seed 1

One process writes, with small files that are merged, deleted from and dropped all the time; the others read the same directory,
and are killed and stopped as well. Each answer has all that was acknowledged before it was asked for, whole requests only, in
the order in which they were sent, nothing twice; and no reader ever goes back. Ends with status 1 if anything else was found.
"""

from __future__ import annotations

import argparse
import http.client
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from typing import Optional

from server import Server

DATABASE = "storm"
START_NS = 1_700_000_000_000_000_000
LINES = 20
# Files come and go within moments; a lease is all that keeps them for a reader.
BUSY = {"flush_after": "200ms", "compaction_grace": "0s", "compaction_quiet": "0s", "wal_segment_bytes": "64KiB"}
DELETES = {"ARC_DELETE_ENABLED": "true"}
FAILURES = (OSError, http.client.HTTPException)


class Model:
    """What was sent and acknowledged: numbers of each writer, generations of rows that are deleted, and a table that is dropped."""

    def __init__(self, writers: int) -> None:
        self.acknowledged = [0] * writers
        self.sent = [0] * writers
        self.generation = self.dropped = 0
        self.problems: list[str] = []
        self.answers = self.expired = 0
        self.lock = threading.Lock()

    def problem(self, text: str) -> None:
        with self.lock:
            self.problems.append(text)
        if len(self.problems) <= 20:
            print(text[:500], flush=True)


class Load:
    """Threads that write until the server is gone."""

    def __init__(self, server: Server, model: Model) -> None:
        self.server, self.model = server, model
        jobs = [lambda number=number: self.numbers(number) for number in range(len(model.sent))]
        self.threads = [threading.Thread(target=self.until_gone, args=(job,)) for job in [*jobs, self.generations, self.drops]]
        for thread in self.threads:
            thread.start()

    def until_gone(self, job) -> None:
        try:
            job()
        except FAILURES:
            pass

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def post(self, connection: http.client.HTTPConnection, path: str, body: str) -> None:
        connection.request("POST", path, body.encode(), {"x-arc-database": DATABASE})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204, 404):
            self.model.problem(f"{path}: {answer.status} {text!r}")

    def numbers(self, writer: int) -> None:
        """Requests one after the other; the first that was not answered is sent again, as it was."""
        connection, model = self.server.connect(), self.model
        while True:
            number = model.acknowledged[writer]
            model.sent[writer] = number + 1
            values = range(number * LINES, (number + 1) * LINES)
            level = ("disk", "process")[number % 2]
            lines = "\n".join(f"n,w={writer} v={value}i {START_NS + value}" for value in values)
            self.post(connection, f"/write?db={DATABASE}&durability={level}", lines)
            model.acknowledged[writer] = number + 1

    def generations(self) -> None:
        connection, model = self.server.connect(), self.model
        while True:
            new = model.generation + 1
            self.post(connection, f"/write?db={DATABASE}", "\n".join(f"g,h={new} v={row}i {START_NS + row}" for row in range(LINES)))
            self.post(connection, "/api/v1/delete", json.dumps({"database": DATABASE, "measurement": "g", "where": f"h <> '{new}'"}))
            model.generation = new

    def drops(self) -> None:
        connection, model = self.server.connect(), self.model
        while True:
            new = model.dropped + 1
            self.post(connection, f"/write?db={DATABASE}", "\n".join(f"d,h={row} v={new}i {START_NS}" for row in range(LINES)))
            time.sleep(0.02)
            self.post(connection, "/api/v1/query", json.dumps({"sql": "DROP TABLE IF EXISTS d"}))
            model.dropped = new


class Watcher:
    """One process that reads, and a thread that asks it."""

    def __init__(self, directory: pathlib.Path, model: Model, name: str) -> None:
        self.model, self.name = model, name
        self.server = Server(directory, environment={"ARC_READER": "true"})
        self.server.wait_until_ready()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def ask(self, sql: str) -> Optional[list[list]]:
        """Returns the rows; None if there is no answer, for the process is gone or its files were."""
        try:
            status, answer = self.server.request("POST", "/api/v1/query", json.dumps({"sql": sql}).encode(), x_arc_database=DATABASE)
        except FAILURES:
            return None
        if status == 404:
            return []
        if status == 503 and b"removed data files" in answer:
            self.model.expired += 1
            return None
        if status != 200:
            self.model.problem(f"{self.name}: {sql}: {status} {answer!r}")
            return None
        return json.loads(answer)["data"]

    def run(self) -> None:
        last, generation, dropped = [0] * len(self.model.sent), 0, 0
        while not self.stop.is_set():
            before = list(self.model.acknowledged)
            rows = self.ask("SELECT CAST(w AS BIGINT), count(*), max(v), count(DISTINCT v) FROM n GROUP BY 1")
            if rows is not None:
                last = self.check_numbers({row[0]: row[1:] for row in rows}, before, last)
            least = self.model.generation
            rows = self.ask("SELECT CAST(h AS BIGINT), count(*) FROM g GROUP BY 1 ORDER BY 1")
            if rows:
                generation = self.check_generations(rows, max(least, generation))
            rows = self.ask("SELECT v, count(*) FROM d GROUP BY 1")
            if rows:
                if len(rows) > 1 or rows[0][1] != LINES or rows[0][0] < dropped:
                    self.model.problem(f"{self.name}: a table that was dropped: {rows}, after {dropped}")
                dropped = rows[0][0]
            self.model.answers += 3

    def check_numbers(self, found: dict, before: list[int], last: list[int]) -> list[int]:
        now = [found.get(writer, [0])[0] for writer in range(len(before))]
        for writer, count in enumerate(now):
            rows, newest, distinct = found.get(writer, [0, -1, 0])
            most = self.model.sent[writer] * LINES
            whole = rows == newest + 1 == distinct and rows % LINES == 0
            if not whole or not max(before[writer] * LINES, last[writer]) <= count <= most:
                text = f"{rows} rows up to {newest}, {before[writer] * LINES} acknowledged, {last[writer]} seen, {most} sent"
                self.model.problem(f"{self.name}: writer {writer}: {text}")
        return now

    def check_generations(self, rows: list[list], least: int) -> int:
        numbers = [row[0] for row in rows]
        follow = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if len(rows) > 2 or not follow or any(row[1] != LINES for row in rows) or numbers[-1] < least:
            self.model.problem(f"{self.name}: generations {rows}, at least {least}")
        return max(numbers)

    def end(self) -> None:
        self.stop.set()
        self.server.process.send_signal(signal.SIGCONT)
        self.thread.join()
        self.server.process.kill()
        self.server.process.wait()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20, help="of the process that writes")
    parser.add_argument("--between", type=float, default=3, help="seconds between them, about")
    parser.add_argument("--pause", type=float, default=0, help="stop a reader for so many seconds, once; its lease takes 60")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args()


def pause(watcher: Watcher, seconds: float) -> None:
    watcher.server.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    watcher.server.process.send_signal(signal.SIGCONT)


def main() -> None:
    options = arguments()
    chance = random.Random(options.seed)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="arc-readers-"))
    model = Model(options.writers)
    print(f"seed {options.seed}, {directory}", flush=True)
    server = Server(directory, environment=DELETES, **BUSY)
    server.wait_until_ready()
    watchers = [Watcher(directory, model, f"reader {number}") for number in range(options.readers)]
    pausing = threading.Thread(target=pause, args=(watchers[0], options.pause))
    if options.pause:
        pausing.start()
    for kill in range(options.kills):
        load = Load(server, model)
        time.sleep(options.between * chance.uniform(0.5, 1.5))
        if chance.random() < 0.3 and len(watchers) > 1:
            victim = chance.randrange(1, len(watchers))
            watchers[victim].server.process.kill()
            watchers[victim].end()
            watchers[victim] = Watcher(directory, model, f"reader {victim} after {kill} kills")
        server.process.kill()
        server.process.wait()
        load.join()
        server = Server(directory, environment=DELETES, **BUSY)
        server.wait_until_ready()
    if options.pause:
        pausing.join()
    time.sleep(1)
    for watcher in watchers:
        watcher.end()
    server.process.kill()
    server.process.wait()
    acknowledged = sum(model.acknowledged) * LINES
    print(f"{acknowledged} points, {model.generation} generations, {model.dropped} drops, {model.answers} answers, {model.expired} expired")
    if model.problems:
        sys.exit(f"{len(model.problems)} problems; the directory is kept: {directory}")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
