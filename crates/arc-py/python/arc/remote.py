"""An engine behind a connection: the same calls, over HTTP, of an ``arc-server``."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import uuid
from collections.abc import Mapping
from datetime import timedelta
from queue import Empty, LifoQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from arc._arc import Table
from arc.errors import (
    AccessDeniedError,
    BusyError,
    ClosedError,
    Error,
    InternalError,
    InvalidInputError,
    IoError,
    NotFoundError,
    OutcomeUnknownError,
    QueryTimeoutError,
    StorageFullError,
)
from arc.receipts import Executed, Rejected, Written
from arc.relation import Parameters
from arc.store import Store

if TYPE_CHECKING:
    from arc._arc import Schema
    from arc.tail import TailSource
    from arc.types import Seconds

KINDS: dict[int, type[Error]] = {
    401: AccessDeniedError,
    403: AccessDeniedError,
    404: NotFoundError,
    408: BusyError,
    429: BusyError,
    503: BusyError,
    504: QueryTimeoutError,
    507: StorageFullError,
}
READING = {"select", "with", "from", "values", "show", "describe", "desc", "explain", "summarize", "table"}
"""Words that statements begin with which may be sent twice."""
IDLE = 8
"""Connections that are kept while nothing uses them."""


class Connection(Store):
    """An engine behind a connection, made by ``arc.connect``. The calls are those of :class:`arc.Engine` that read or write.

    May be used from any number of threads. Unlike in this process, ``sql`` sends nothing before its rows are used, and
    data frames of this process are no tables there.
    """

    def __init__(self, url: str, token: str | None, ca_file: str | None, timeout: float) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path.strip("/"):
            raise InvalidInputError(f"url is {url!r}; http://host:port or https://host:port was expected")
        self._host, self._port, self._is_tls = parts.hostname, parts.port, parts.scheme == "https"
        self._tls = ssl.create_default_context(cafile=ca_file) if self._is_tls else None
        self._token = token if token is not None else os.environ.get("ARC_TOKEN")
        self._timeout = timeout
        self._idle: LifoQueue[tuple[int, http.client.HTTPConnection]] = LifoQueue(IDLE)
        self._closed = False
        self.url = f"{parts.scheme}://{parts.netloc}"
        """Where the server is."""
        super().__init__()

    _sees_all_changes = False
    _instead = "call arc.connect() in every process"

    # Requests.

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """Returns a connection, and whether it was used before. One that a fork brought along is not used."""
        while True:
            try:
                process, connection = self._idle.get_nowait()
            except Empty:
                break
            if process == os.getpid():
                return connection, True
        return self._fresh(), False

    def _fresh(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        *,
        once: bool = False,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Sends a request and returns the answer. Sent once more where a kept connection turns out to be closed.

        once: whether the server may have done what it was asked to, and doing it again would be something else. It is sent
            over a connection of its own then, which is not closed yet, and never again.
        """
        if self._closed:
            raise ClosedError("the connection is closed")
        sent = {name: value for name, value in (headers or {}).items() if value is not None}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        while True:
            connection, was_used = (self._fresh(), False) if once else self._connection()
            try:
                connection.request(method, path, body, sent)
                response = connection.getresponse()
                answer = response.status, dict((name.lower(), value) for name, value in response.getheaders()), response.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                connection.close()
                if was_used:
                    continue
                raise self._lost(error, path, once) from error
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                raise self._lost(error, path, once) from error
            except BaseException:
                # Ctrl-C: the server ends a query whose client is gone.
                connection.close()
                raise
            try:
                self._idle.put_nowait((os.getpid(), connection))
            except Exception:
                connection.close()
            return answer

    def _lost(self, error: Exception, path: str, once: bool = False) -> Error:
        reason = f"{self.url} does not answer: {error or type(error).__name__}"
        is_sent = not isinstance(error, (ConnectionRefusedError, ssl.SSLError)) and not str(error).startswith("[Errno -")
        if is_sent and "/write" in path:
            return OutcomeUnknownError(f"{reason}; whether the rows are stored is not known")
        if is_sent and once:
            return OutcomeUnknownError(f"{reason}; whether the statement was executed is not known")
        lost = IoError(reason)
        lost.errno = getattr(error, "errno", None)
        return lost

    def _sent(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        *,
        once: bool = False,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Sends a request; raises what its status says."""
        status, head, data = self._request(method, path, body, headers, once=once)
        if status < 300:
            return status, head, data
        raise failure(status, head, data, is_write=once or "/write" in path)

    def _streamed(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request whose answer has no end, on a connection of its own."""
        if self._closed:
            raise ClosedError("the connection is closed")
        connection, sent = self._fresh(), {"x-arc-arrow-dictionary": "true"}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("GET", path, None, sent)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            head = dict((name.lower(), value) for name, value in response.getheaders())
            refused = failure(response.status, head, response.read(), is_write=False)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._lost(error, path) from error
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise refused

    # What reads.

    def _tail(self, database: str, table: str, since_ns: int | None) -> TailSource:
        from arc.remote_tail import RemoteTail

        asked = {"db": database, "table": table, "format": "arrow"}
        if since_ns is not None:
            asked["since"] = str(since_ns)
        connection, response = self._streamed(f"/api/v1/tail?{urlencode(asked)}")

        def ended(status: int, reason: str) -> Error:
            return failure(status, {}, json.dumps({"error": reason}).encode(), is_write=False)

        return RemoteTail(connection, response, ended)

    def _ask(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> RemoteAnswer:
        if tables:
            raise NotFoundError("data frames of this process are no tables of a server; write them there first")
        body: dict[str, Any] = {"sql": query, "database": database}
        if params is not None:
            body["params"] = dict(params) if isinstance(params, Mapping) else list(params)
        try:
            encoded = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError):
            raise InvalidInputError("over a connection, params are numbers, texts, truths and None") from None
        return RemoteAnswer(self, encoded, once=first_word(query) not in READING)

    def _planned(self, database: str, query: str, params: Parameters, frame: Any) -> Any:
        from arc.relation import Relation

        # Nothing is sent before it is used, so that what is made of a relation costs the server nothing.
        return Relation(self, database, query, params, {})

    def _run(self, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> Executed:
        word = first_word(query)
        if word not in ("insert", "create", "drop"):
            raise InvalidInputError("over a connection, execute() knows INSERT, CREATE and DROP; delete() deletes")
        rows = self._ask(database, query, params, tables).read()
        return Executed(word, rows.columns()[0][0] if word == "insert" else None)

    def databases(self) -> list[str]:
        found = json.loads(self._sent("GET", "/api/v1/databases")[2])
        return sorted(database["name"] for database in found["databases"])

    def tables(self, database: str) -> list[str]:
        found = json.loads(self._sent("GET", f"/api/v1/databases/{quote(database, safe='')}/measurements")[2])
        return sorted(table["name"] for table in found["measurements"])

    def delete(self, database: str, table: str, where: str) -> None:
        """Deletes the points of a table that meet a condition; the server has to allow that. See :meth:`arc.Engine.delete`."""
        body = {"database": database, "measurement": table, "where": where, "confirm": True}
        try:
            self._sent("POST", "/api/v1/delete", json.dumps(body).encode())
        finally:
            self._changes += 1

    # What writes.

    def _write(self, table: str, data: Any, **settings: Any) -> Written:
        rows = data if isinstance(data, Table) else Table.from_arrow(data)
        tags = settings["tags"]
        if any("," in tag for tag in tags or ()):
            raise InvalidInputError("over a connection, the name of a tag has no comma")
        if len(rows) == 0:
            return Written(0, 0, [], settings["durability"] or "disk")
        headers = {
            "x-arc-measurement": encoded(table),
            "x-arc-time-column": encoded(settings["time"]),
            "x-arc-tags": encoded(",".join(tags)) if tags else None,
        }
        return self._store("/api/v1/write/arrow", rows.ipc(), settings, headers)

    def _write_lp(self, database: str, data: str | bytes | bytearray, **settings: Any) -> Written:
        body = data.encode() if isinstance(data, str) else bytes(data)
        return self._store("/api/v1/write/line-protocol", body, {**settings, "database": database}, {})

    def _store(
        self, path: str, body: bytes, settings: Mapping[str, Any], headers: Mapping[str, str | None]
    ) -> Written:
        sent = {
            "x-arc-database": encoded(settings["database"]),
            "x-arc-precision": settings["precision"],
            "x-arc-durability": settings["durability"],
            # Of ours if there is none, so that a request that is sent again stores nothing twice.
            "Idempotency-Key": settings["idempotency_key"] or str(uuid.uuid4()),
            **headers,
        }
        status, head, data = self._request("POST", path, body, sent)
        durability = head.get("x-arc-durability", settings["durability"] or "disk")
        replayed = head.get("idempotency-replayed") == "true"
        if status == 204:
            return Written(int(head.get("x-arc-points", 0)), 0, [], durability, replayed)
        partial = decoded(data)
        if status == 400 and "rejected" in partial:
            lines = [Rejected(line["line"], line["column"], line["reason"]) for line in partial.get("lines", [])]
            return Written(partial["stored"], partial["rejected"], lines, durability, replayed)
        raise failure(status, head, data, is_write=True)

    def close(self) -> None:
        """Closes the connections, once writers that are open have written their rows; any other call then raises ``ClosedError``."""
        super().close()

    def _end(self) -> None:
        self._closed = True
        while True:
            try:
                self._idle.get_nowait()[1].close()
            except Empty:
                return

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<arc.Connection {self.url}>"


class RemoteAnswer:
    """Rows that a server has, asked for once they are read."""

    def __init__(self, connection: Connection, body: bytes, *, once: bool) -> None:
        self._connection = connection
        self._body = body
        self._once = once
        self._table: Table | None = None
        self._is_read = False

    def read(self) -> Table:
        if self._table is None:
            # Tags stay dictionaries, as in this process.
            headers = {"x-arc-arrow-dictionary": "true", "Content-Type": "application/json"}
            answer = self._connection._sent("POST", "/api/v1/query/arrow", self._body, headers, once=self._once)
            self._table = Table.from_ipc(answer[2])
        return self._table

    def read_next(self) -> Table | None:
        if self._is_read:
            return None
        self._is_read = True
        table = self.read()
        return table if len(table) else None

    def cancel(self) -> None:
        """Does nothing: the thread that waits for the server keeps its answer to itself."""

    @property
    def schema(self) -> Schema:
        return self.read().schema

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.read().__arrow_c_stream__(requested_schema)


def connect(
    url: str, *, token: str | None = None, ca_file: str | None = None, timeout: Seconds | None = None
) -> Connection:
    """Returns an engine behind a connection: the server at ``url``, ``http://host:port`` or ``https://host:port``.

    Connects with the first call.

    token: what the server lets in; by default the environment variable ``ARC_TOKEN``.
    ca_file: the certificate that the server's is signed by, if the system does not know it.
    timeout: how long a call waits for the server to say anything, in seconds or as a ``datetime.timedelta``; 330 s.
    """
    if isinstance(timeout, timedelta):
        timeout = timeout.total_seconds()
    seconds = 330.0 if timeout is None else float(timeout)
    return Connection(url, token, ca_file, seconds)


def first_word(query: str) -> str:
    """Returns the word that a statement begins with, in small letters."""
    return (re.match(r"[\s(]*(\w*)", query) or [""])[1].lower()


def encoded(text: str) -> str:
    """Returns a text as a header has it; refuses what none can have."""
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        raise InvalidInputError(f"{text!r} has control characters")
    # http.client sends Latin-1: these are the bytes of UTF-8.
    return text.encode().decode("latin-1")


def decoded(data: bytes) -> dict[str, Any]:
    """Returns the object of an answer, empty if it is none."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def failure(status: int, head: Mapping[str, str], data: bytes, *, is_write: bool) -> Error:
    """Returns the exception that an answer stands for."""
    found = decoded(data)
    reason = str(found.get("error") or found.get("message") or f"the server answered with status {status}")
    kind = KINDS.get(status)
    if kind is None:
        kind = InvalidInputError if status < 500 else OutcomeUnknownError if is_write else InternalError
    error = kind(reason)
    if isinstance(error, BusyError) and head.get("retry-after", "").isdigit():
        error.retry_after = float(head["retry-after"])
    return error
