"""The rows that a server sends as they are acknowledged."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from queue import Empty, Full, Queue
from typing import Any

from arc._arc import Table, TailDecoder
from arc.errors import Error, IoError

PARTS = 16
"""Parts that wait here; with more, the server has to keep them, and ends the tail of who is too slow."""
PIECE = 1 << 18
"""Bytes that are read at once, at most."""


class RemoteTail:
    """The answer to one request, read by a thread of its own so that whoever takes rows may wait as long as they want."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        failed: Callable[[int, str], Error],
    ) -> None:
        self._connection = connection
        self._response = response
        self._failed = failed
        self._parts: Queue[Table | Error | None] = Queue(PARTS)
        self._ending: Error | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._read, name="arc-tail", daemon=True).start()

    def take(self, seconds: float) -> Table | None:
        if self._ending is not None:
            raise self._ending
        if self._closed.is_set():
            return None
        try:
            part = self._parts.get(timeout=max(seconds, 0.0)) if seconds > 0 else self._parts.get_nowait()
        except Empty:
            return None
        if isinstance(part, Error):
            self._ending = part
            raise part
        return part

    def close(self) -> None:
        self._closed.set()
        try:
            # Whoever waits gets nothing.
            self._parts.put_nowait(None)
        except Full:
            pass
        # The thread that reads notices, and closes the rest.
        sock: Any = self._connection.sock
        if sock is not None:
            try:
                sock.shutdown(2)
            except OSError:
                pass

    def _put(self, part: Table | Error) -> None:
        while not self._closed.is_set():
            try:
                return self._parts.put(part, timeout=0.2)
            except Full:
                continue

    def _read(self) -> None:
        try:
            self._put(self._read_through())
        finally:
            self._response.close()
            self._connection.close()

    def _read_through(self) -> Error:
        """Hands on all rows; returns why there are no more."""
        decoder = TailDecoder()
        try:
            while data := self._response.read1(PIECE):
                tables, reason = decoder.feed(data)
                for table in tables:
                    self._put(table)
                if reason is not None:
                    text, status = reason
                    return self._failed(status, text)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return IoError(f"the tail was cut off: {error or type(error).__name__}")
        except Error as error:
            return error
        return IoError("the tail was cut off")
