"""Threads that write numbered points over HTTP until the server is gone."""

from __future__ import annotations

import http.client
import json
import random
import threading
from typing import Optional

import bodies
from bodies import Points
from oracle import Fate, Request, promise
from server import Server

# The level, and how often it is asked for. Nothing is promised for `memory`, but no half and no double either.
LEVELS = ["disk"] * 4 + ["process"] * 4 + ["memory"] * 2 + [""]


class Writer:
    """Numbers of one writer, which go on from one process of the server to the next."""

    def __init__(self, number: int, seed: int, largest: int) -> None:
        self.number, self.largest = number, largest
        self.random = random.Random(f"{seed} {number}")
        self.next = 0
        self.requests = 0
        self.acknowledged = 0
        self.refused = 0
        self.deletes: Optional[bool] = None
        self.compacts = number == 0

    def run(self, server: Server, stop: threading.Event) -> list[Request]:
        """Writes until the server is gone; returns all requests that were sent."""
        sent: list[Request] = []
        connection = server.connect()
        try:
            while not stop.is_set():
                request = self._write(connection, sent)
                if request.fate is Fate.STORED and len(request.tables) == 1 and self.random.random() < 0.03:
                    self._delete(connection, request)
                if self.compacts and self.random.random() < 0.05:
                    call(connection, "/api/v1/compaction/trigger", b"", {})
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return sent

    def _points(self) -> Points:
        size = self.random.choice([10, 10, 1_000, self.largest])
        count = self.random.randint(1, min(size, self.largest))
        # Days in any order: most requests are late for some series.
        points = Points(self.number << 32 | self.requests, self.number, self.next, count, self.random.randrange(4))
        self.next += count
        self.requests += 1
        return points

    def _write(self, connection: http.client.HTTPConnection, sent: list[Request]) -> Request:
        points = self._points()
        body = bodies.draw(self.random, points)
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
        status, answer, reached = call(connection, path, data, body.headers)
        self._judge(request, status, answer, reached, level)
        return request

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
        status, answer, _ = call(connection, "/api/v1/delete", data, headers)
        self.deletes = status not in (404, 405, 403)
        request.what += f", delete {status}"
        if status == 200:
            request.fate = Fate.ABSENT
        elif promise(status, answer) is Fate.ABSENT or not self.deletes:
            # The delete was refused.
            request.fate = Fate.STORED


def call(
    connection: http.client.HTTPConnection, path: str, data: bytes, headers: dict[str, str]
) -> tuple[int, bytes, str]:
    connection.request("POST", path, data, headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers.get("x-arc-durability", "")


def run_all(writers: list[Writer], server: Server, stop: threading.Event) -> tuple[list[threading.Thread], list[Request]]:
    """Starts a thread for each writer; the list has all their requests once the threads have ended."""
    requests: list[Request] = []
    threads = []
    for writer in writers:
        thread = threading.Thread(target=lambda writer=writer: requests.extend(writer.run(server, stop)))  # type: ignore[misc]
        thread.start()
        threads.append(thread)
    return threads, requests
