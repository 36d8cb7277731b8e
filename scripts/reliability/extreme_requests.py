"""The cases of `extremes.py`, of one or more requests each, and checks of a single answer."""

from __future__ import annotations

import http.client
import io
import json
import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from attacks import BODY_S, STATEMENT_S, asked
from extreme_bodies import Body, arrow_stream
from extreme_statements import Statement
from extreme_values import SECRET_DATABASE, SECRET_NUMBER, SECRET_TABLE, SECRET_TEXT
from extreme_world import DATABASE
from server import Server

# How a delete begins, whose condition goes through a door of its own.
DELETE = "DELETE FROM x_scratch WHERE "
DOORS = ("json", "arrow", "v3", "estimate")
FORMATS = ("csv", "ndjson", "msgpack", "parquet", "pretty")
# What no answer may have, as text and as it lies in Arrow and MessagePack.
SECRET_VALUES = (
    SECRET_TEXT.encode(), str(SECRET_NUMBER).encode(), struct.pack("<q", SECRET_NUMBER),
    struct.pack(">q", SECRET_NUMBER),
    SECRET_TEXT.encode().hex().encode(),
)  # fmt: skip
# What only an answer to a statement that has them may have.
SECRET_NAMES = (SECRET_TABLE.encode(), SECRET_DATABASE.encode())
# How long a client waits beyond the limit and its patience.
GIVES_UP_S = 30.0
LONGEST_ANSWER = 256 << 20
CHUNK = 1 << 20


@dataclass(frozen=True)
class Request:
    """A request by a role, which has to be answered within `limit_s` and a client's patience."""

    role: str
    path: str
    body: bytes
    limit_s: float = STATEMENT_S
    content_type: str = "application/json"


@dataclass(frozen=True)
class Case:
    """Requests after each other, named for what they try; `text` is enough to send them again."""

    name: str
    text: str
    make: Callable[[], list[Request]]
    is_change: bool = False
    may_name_secrets: bool = False


@dataclass
class Outcome:
    """What came of a case."""

    case: Case
    statuses: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    took_s: float = 0.0


def query(sql: str, door: str, role: str) -> Request:
    """Returns the request that sends a statement through a door, or for an answer of a format."""
    if sql.startswith(DELETE):
        condition = {
            "database": DATABASE,
            "measurement": "x_scratch",
            "where": sql.removeprefix(DELETE),
            "confirm": True,
        }
        return Request(role, "/api/v1/delete", json.dumps(condition).encode())
    if door in DOORS:
        _, path, body = asked(door, DATABASE, sql)
    else:
        path, body = f"/api/v1/query?db={DATABASE}&format={door}", json.dumps({"sql": sql}).encode()
    return Request(role, path, body)


def statement_case(statement: Statement, door: str, role: str) -> Case:
    door, role = ("json", "writer") if statement.is_change else (door, role)
    name = f"{statement.name} ({door}, {role})"
    request = query(statement.sql, door, role)
    return Case(
        name, statement.sql, lambda: [request], statement.is_change, statement.names_a_secret()
    )


def body_case(body: Body, formats: tuple[str, ...]) -> Case:
    """Returns the case that writes a body, reads it in each format, and drops its table."""
    table = "x_body_" + "".join(letter if letter.isalnum() else "_" for letter in body.name)

    def make() -> list[Request]:
        data = body.make()
        if not data:
            return []
        reads = [query(f"SELECT * FROM {table}", format_, "reader") for format_ in formats]
        for sql in (
            "SELECT min(v0), max(v0), count(DISTINCT v0) FROM {0}",
            "SELECT v0 FROM {0} ORDER BY v0",
            "SELECT count(*) FROM {0} GROUP BY v0",
        ):
            reads.append(query(sql.format(table), "json", "reader"))
        return [
            store(body.door, table, data),
            *reads,
            query(f"DROP TABLE IF EXISTS {table}", "json", "writer"),
        ]

    return Case(f"body {body.name}", body.name, make, is_change=True)


def store(door: str, table: str, data: bytes) -> Request:
    if door == "arrow":
        path = f"/api/v1/write/arrow?db={DATABASE}&table={table}"
        return Request("writer", path, data, BODY_S, "application/vnd.apache.arrow.stream")
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.parquet"\r\n\r\n'
    path = f"/api/v1/import/parquet?db={DATABASE}&measurement={table}&time_format=epoch_ns"
    return Request(
        "writer", path, head + data + b"\r\n--x--\r\n", BODY_S, "multipart/form-data; boundary=x"
    )


# Answers.


def leaked(data: bytes, may_name_secrets: bool) -> list[str]:
    """Returns which secrets an answer has."""
    names = () if may_name_secrets else SECRET_NAMES
    return [f"the answer has {secret!r}" for secret in (*SECRET_VALUES, *names) if secret in data]


def plain(data: bytes, path: str) -> bytes:
    """Returns an answer without compression, as far as its format has one."""
    if "format=parquet" not in path or not data.startswith(b"PAR1"):
        return data
    try:
        return arrow_stream(pq.read_table(io.BytesIO(data)))
    except (pa.ArrowException, OSError):
        return data


def read(
    answer: http.client.HTTPResponse, deadline: float, may_name_secrets: bool
) -> tuple[bytes, list[str]]:
    """Reads an answer; returns its beginning, and the secrets in all of it."""
    first, tail, size = b"", b"", 0
    found: dict[str, None] = {}
    while size < LONGEST_ANSWER and time.monotonic() < deadline:
        chunk = answer.read(CHUNK)
        if not chunk:
            break
        first, size = first or chunk, size + len(chunk)
        found.update(dict.fromkeys(leaked(tail + chunk, may_name_secrets)))
        # A secret may lie across two chunks.
        tail = chunk[-64:]
    return first, list(found)


def details(server: Server, data: bytes) -> str:
    """Returns what the log of the server has about an error that an answer keeps to itself."""
    text = data[:300].decode(errors="replace")
    found = re.search(r"under (\w{26})", text)
    # The log is read by another thread.
    time.sleep(0.2)
    lines = [line for line in server.log[-200:] if found and found[1] in line]
    fields = json.loads(lines[-1]) if lines else {}
    return str(fields.get("error") or fields.get("fields", {}).get("error") or text)[:600]


def send(
    server: Server, token: str, request: Request, case: Case, patience_s: float
) -> tuple[str, list[str]]:
    """Sends a request; returns its status, and what is wrong with the answer."""
    began = time.monotonic()
    longest_s = request.limit_s + patience_s
    connection = server.connect(longest_s + GIVES_UP_S)
    headers = {"authorization": f"Bearer {token}", "content-type": request.content_type}
    status, took_s = "", 0.0
    problems: list[str] = []
    try:
        connection.request("POST", request.path, request.body, headers)
        answer = connection.getresponse()
        status = str(answer.status)
        data, problems = read(answer, began + longest_s + GIVES_UP_S, case.may_name_secrets)
        # What is read of a small file of Parquet may be large, and takes the client its time.
        took_s = time.monotonic() - began
        if "format=parquet" in request.path:
            problems += leaked(plain(data, request.path), case.may_name_secrets)
        if answer.status == 500:
            problems.append(f"500: {details(server, data)}")
    except (OSError, http.client.HTTPException) as error:
        status = f"{status} {type(error).__name__}".strip()
    finally:
        connection.close()
    took_s = took_s or time.monotonic() - began
    if took_s > longest_s:
        problems.append(f"late: answered after {took_s:.1f} s")
    return status, problems


def run(server: Server, tokens: dict[str, str], case: Case, patience_s: float) -> Outcome:
    """Sends the requests of a case, as long as the process lives."""
    outcome = Outcome(case)
    for request in case.make():
        began = time.monotonic()
        status, problems = send(server, tokens[request.role], request, case, patience_s)
        outcome.took_s = max(outcome.took_s, time.monotonic() - began)
        outcome.statuses.append(status)
        outcome.problems += problems
        if not status[:1].isdigit() and not server.is_alive():
            break
    return outcome
