"""Threads that write numbered points over HTTP until the server is gone."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from dataclasses import dataclass
from typing import Optional

import bodies
from bodies import DAY_NS, DROPPED, EXPIRING, RETENTION_DAYS, SMALL, START_NS, Points
from clock import Clock
from drops import DroppedTable
from oracle import Fate, Request, may_expire, promise
from server import Server
from versions import Versions

# The level, and how often it is asked for. Nothing is promised for `memory`, but no half and no double either.
LEVELS = ["disk"] * 4 + ["process"] * 4 + ["memory"] * 2 + [""]


@dataclass
class Sent:
    """A request as it was sent under a key, to be sent again if there was no answer."""

    request: Request
    path: str
    data: bytes
    headers: dict[str, str]
    level: str


class Writer:
    """Numbers of one writer, which go on from one process of the server to the next."""

    def __init__(
        self, number: int, seed: int, largest: int, clock: Clock, dropped: dict[str, DroppedTable], small: bool = True
    ) -> None:
        self.number, self.largest, self.small, self.clock = number, largest, small, clock
        self.random = random.Random(f"{seed} {number}")
        self.versions = Versions(number, self.random)
        # Two of them, each of which another writer drops, too.
        self.dropped = [dropped[DROPPED[(number + place) % len(DROPPED)]] for place in (0, 1)]
        self.next = 0
        self.requests = 0
        self.acknowledged = 0
        self.refused = 0
        self.deletes: Optional[bool] = None
        self.compacts = number == 0
        # Requests with keys that had no answer.
        self.unanswered: list[Sent] = []
        self.retried = self.replayed = self.drops = 0
        self.problems: list[str] = []

    def run(self, server: Server, stop: threading.Event) -> list[Request]:
        """Writes until the server is gone; returns all requests that were sent."""
        sent: list[Request] = []
        connection = server.connect()
        try:
            while self.unanswered and not stop.is_set():
                self._retry(connection, self.unanswered[0])
                self.unanswered.pop(0)
            while not stop.is_set():
                request = self._write(connection, sent)
                may_delete = len(request.tables) == 1 and request.tables[0] not in DROPPED
                if request.fate is Fate.STORED and may_delete and self.random.random() < 0.03:
                    self._delete(connection, request)
                if self.random.random() < 0.15:
                    self._write_again(connection)
                if self.random.random() < 0.03:
                    self._drop(connection, self.random.choice(self.dropped))
                if self.compacts and self.random.random() < 0.05:
                    self._set_retention(connection)
                if self.compacts and self.random.random() < 0.05:
                    call(connection, "/api/v1/compaction/trigger", b"", {})
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return sent

    def _points(self, tables: tuple[str, ...]) -> Points:
        size = self.random.choice([10, 10, 1_000, self.largest])
        count = self.random.randint(1, min(size, self.largest))
        # Days in any order: most requests are late for some series.
        day = self.random.randrange(4)
        today = (time.time_ns() - START_NS) // DAY_NS
        if tables == (EXPIRING,) and self.random.random() < 0.5:
            # Of these days.
            day = today - day
        elif tables == SMALL:
            # What is packed stays so until its day is over.
            day, count = today, min(count, 2 * len(SMALL))
        points = Points(self.number << 32 | self.requests, self.number, self.next, count, day)
        self.next += count
        self.requests += 1
        return points

    def _write(self, connection: http.client.HTTPConnection, sent: list[Request]) -> Request:
        own = [*([SMALL] if self.small else []), (EXPIRING,), *((table.name,) for table in self.dropped)]
        tables = self.random.choice([(), (), (), (), (), (), *own])
        points = self._points(tables)
        body = bodies.draw(self.random, points, tables)
        level = self.random.choice(LEVELS)
        if level:
            body.headers["x-arc-durability"] = level
        path, data, bad = body.path, body.data, self.random.random()
        if bad < 0.02:
            # Ends early, wherever it is cut: refused as a whole. Of line protocol, only what is compressed.
            if "content-encoding" in body.headers or "msgpack" in path:
                data = data[: self.random.randrange(1, len(data))]
        elif bad < 0.04 and "content-encoding" not in body.headers and "msgpack" not in path:
            data += b"\nlines,writer=w n=no 1"
        request = Request(points, body.tables)
        sent.append(request)
        dropped = next((table for table in self.dropped if (table.name,) == tables), None)
        if dropped:
            dropped.begin(request)
        elif self.random.random() < 0.3:
            # Not of the table that is dropped: a key is there although its points have gone.
            body.headers["idempotency-key"] = f"{self.number} {points.request}"
            self.unanswered.append(Sent(request, path, data, body.headers, level))
        status, answer, reached, replayed = call(connection, path, data, body.headers)
        if "idempotency-key" in body.headers:
            self.unanswered.pop()
        if replayed:
            self.problems.append(f"{request} was sent once and answered as if it had been sent before")
        self._judge(request, status, answer, reached, level)
        if dropped:
            dropped.end(request)
        return request

    def _write_again(self, connection: http.client.HTTPConnection) -> None:
        """Writes points of this writer's that were written before; which version they have is what counts."""
        version, data = self.versions.draw()
        level = self.random.choice(LEVELS)
        headers = {"x-arc-durability": level} if level else {}
        status, answer, _, _ = call(connection, "/api/v1/write/line-protocol?db=storm", data, headers)
        version.what = f"{status} {level}"
        version.fate = promise(status, answer)
        if version.fate is Fate.STORED and level == "memory":
            version.fate = Fate.OPEN

    def _retry(self, connection: http.client.HTTPConnection, again: Sent) -> None:
        """Sends a request again that had no answer: it is there once then, and the answer says whether it was before."""
        request, before = again.request, again.request.fate
        if self.clock.may_have_forgotten():
            # It would be a new write: there twice in the table that appends, and in the files of others until they merge.
            return
        if before is Fate.ABSENT:
            request.fate = Fate.OPEN
        request.what += ", sent again"
        status, answer, reached, replayed = call(connection, again.path, again.data, again.headers)
        self.retried += 1
        self.replayed += replayed
        may_be_gone = may_expire(request, self.clock) and replayed
        is_stored = status == 204 or b'"stored"' in answer
        if is_stored and replayed != (before is Fate.STORED) and before is not Fate.OPEN and not may_be_gone:
            self.problems.append(f"{request} was {before.value}, and sent again it was answered with replayed={replayed}")
        if before is Fate.STORED:
            return
        if may_be_gone:
            request.fate = before
            return
        self._judge(request, status, answer, reached, again.level)

    def _drop(self, connection: http.client.HTTPConnection, table: DroppedTable) -> None:
        """Drops a table, where the server can."""
        if self.deletes is False:
            return
        drop = table.begin_drop()
        data = json.dumps({"sql": f"DROP TABLE IF EXISTS storm.{table.name}"}).encode()
        status, answer, _, _ = call(connection, "/api/v1/query", data, {})
        # 503: another one is being dropped.
        if status not in (200, 503):
            self.problems.append(f"a drop was answered {status} {answer!r}")
        else:
            table.end_drop(drop, status == 200)
        self.drops += status == 200

    def _set_retention(self, connection: http.client.HTTPConnection) -> None:
        path = f"/api/v1/retention/storm/{EXPIRING}"
        data = json.dumps({"retention_days": RETENTION_DAYS}).encode()
        status, answer, _, _ = call(connection, path, data, {}, method="PUT")
        # There may be no such table yet, and it takes a flush, in which a table of another writer is dropped.
        if status not in (200, 404, 503):
            self.problems.append(f"a retention was answered {status} {answer!r}")

    def _judge(self, request: Request, status: int, answer: bytes, reached: str, level: str) -> None:
        request.what = f"{status} {reached}"
        stored = json.loads(answer).get("stored", 0) if status == 400 else 0
        if status == 204 or stored == request.points.count:
            # A server without `level` uses its own, which is `disk`.
            assert status == 400 or reached == (level or "disk"), f"asked for {level}, got {reached}"
            if (level or "disk") != "memory":
                request.fate = Fate.STORED
            self.acknowledged += request.points.count
        else:
            request.what += f" {answer!r}"[:200]
            request.fate = promise(status, answer)
            self.refused += request.fate is Fate.ABSENT

    def _delete(self, connection: http.client.HTTPConnection, request: Request) -> None:
        """Deletes a request that is stored, where the server can."""
        if self.deletes is False:
            return
        body = {"database": "storm", "measurement": request.tables[0], "confirm": True, "dry_run": False}
        body["where"] = f"r = {request.points.request}"
        data, headers = json.dumps(body).encode(), {"content-type": "application/json"}
        request.fate, request.deleted = Fate.OPEN, True
        request.what += ", delete sent"
        status, answer, _, _ = call(connection, "/api/v1/delete", data, headers)
        self.deletes = status not in (404, 405, 403)
        request.what += f", delete {status}"
        if status == 200:
            request.fate = Fate.ABSENT
        elif promise(status, answer) is Fate.ABSENT or not self.deletes:
            # The delete was refused.
            request.fate = Fate.STORED


def call(
    connection: http.client.HTTPConnection, path: str, data: bytes, headers: dict[str, str], method: str = "POST"
) -> tuple[int, bytes, str, bool]:
    """Returns status, body, the durability that was reached, and whether it is the answer of an earlier request."""
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    replayed = answer.headers.get("idempotency-replayed") == "true"
    return answer.status, answer.read(), answer.headers.get("x-arc-durability", ""), replayed


def run_all(writers: list[Writer], server: Server, stop: threading.Event) -> tuple[list[threading.Thread], list[Request]]:
    """Starts a thread for each writer; the list has all their requests once the threads have ended."""
    requests: list[Request] = []
    threads = []
    for writer in writers:
        thread = threading.Thread(target=lambda writer=writer: requests.extend(writer.run(server, stop)))  # type: ignore[misc]
        thread.start()
        threads.append(thread)
    return threads, requests
