"""Where ``Engine.push`` hands rows to: a server, a folder, or another engine of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any
from urllib.parse import urlencode

from arc import _arc
from arc.errors import BusyError, InvalidInputError, InternalError, IoError
from arc.remote import Connection, connect, decoded, failure

TRIES = 5
"""How often a request is made; each may be made again."""
PAUSE = 0.25
"""Seconds before it is made again: twice as long each time."""


class PushServer:
    """Makes the requests of a push."""

    def __init__(self, server: Connection) -> None:
        self._server = server

    def adopted(self, origin: str) -> tuple[int, str] | None:
        """Returns number and id of the last cut of a directory that is there."""
        cut = self._ask("GET", f"/api/v1/push?{urlencode({'origin': origin})}").get("cut")
        return None if cut is None else (cut["number"], cut["id"])

    def received(self, file: Mapping[str, Any]) -> int:
        """Returns how many bytes of a file are there."""
        return int(self._ask("GET", f"/api/v1/push/file?{urlencode(file)}")["received"])

    def send(self, file: Mapping[str, Any], offset: int, data: bytes) -> int:
        """Sends bytes of a file; returns how many are there then."""
        query = urlencode({**file, "offset": offset})
        return int(self._ask("PUT", f"/api/v1/push/file?{query}", data)["received"])

    def adopt(self, adoption: bytes) -> list[str]:
        """Has the files of a cut adopted; returns the names of those that are not there as they were sent."""
        answer = self._ask("POST", "/api/v1/push/adopt", adoption)
        if "adopted" not in answer and "missing" not in answer:
            raise InternalError(f"{self._server.url} answered neither adopted nor missing")
        return list(answer.get("missing", []))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        for attempt in range(TRIES):
            try:
                return self._ask_once(method, path, body)
            except (BusyError, IoError):
                if attempt == TRIES - 1:
                    raise
                time.sleep(PAUSE * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _ask_once(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/octet-stream"}
        status, head, data = self._server._request(method, path, body, headers)
        if status == 200:
            return decoded(data)
        raise failure(status, head, data, is_write=False)


@contextmanager
def opened(to: object, token: str | None, ca_file: str | None) -> Iterator[_arc.Engine | PushServer]:
    """Opens where rows go to; what was open before stays open."""
    from arc.engine import Engine

    if isinstance(to, (Engine, Connection)):
        if token is not None or ca_file is not None:
            raise InvalidInputError("token and ca_file are for an address; what is open has its own")
        yield to._native if isinstance(to, Engine) else PushServer(to)
    elif isinstance(to, str) and to.startswith(("http://", "https://")):
        with connect(to, token=token, ca_file=ca_file) as server:
            yield PushServer(server)
    elif isinstance(to, str) and "://" in to:
        raise InvalidInputError(
            f"to is {to!r}; http://, https:// or a folder was expected: a server that has its data in a bucket takes rows over HTTP"
        )
    elif isinstance(to, (str, PathLike)):
        if token is not None or ca_file is not None:
            raise InvalidInputError("token and ca_file are for a server; a folder asks for neither")
        folder = _arc.open(fspath(to))
        try:
            yield folder
        finally:
            folder.close()
    else:
        raise TypeError(f"to must be the address of a server, a folder, a connection or an engine, not {type(to).__name__}")
