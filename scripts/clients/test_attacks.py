"""What somebody without a token tries, and somebody whose token is for another database, against a server that was told nothing.

Every operation of the OpenAPI document, requests that no client sends, and statements that reach for the host's files. None
may show or change anything, end the process, be answered with a 5xx, or have a path of the host or a token in its answer.
"""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Server
from test_openapi import operations

SECRET = "rpm-of-the-plant"


@pytest.fixture
def told_nothing(tmp_path: Path) -> Iterator[Server]:
    """A server without a flag but for its folder and a free port; there is something to take."""
    server = Server(tmp_path / "data", no_auth=False)
    assert server.post("/write?db=plant", f'pump,id=7 note="{SECRET}" 1'.encode())[0] == 204
    yield server
    # Whatever was tried: it lives, has what it had and nothing more, and told its log no secret.
    assert server.sql("SELECT note FROM pump", "plant") == [[SECRET]]
    databases = json.loads(server.ask("GET", "/api/v1/databases")[1])
    assert {database["name"] for database in databases["databases"]} <= {"plant", "mine", "_internal"}
    assert not any(server.token in line or SECRET in line for line in server.log)
    server.stop()


def check(server: Server, what: str, status: int, answer: bytes) -> None:
    assert status < 500, (what, status, answer)
    for told in (SECRET, server.token, str(server.data_dir), "/root", "panicked", ".cargo"):
        # What was sent may come back.
        assert told in what or told.encode() not in answer, (what, told, answer)


def endpoints(server: Server) -> list[tuple[str, str, bool]]:
    """Returns method and path of each operation, and whether anybody may ask it."""
    document = json.loads(server.ask("GET", "/api/openapi.json")[1])
    return [(method.upper(), path, is_open) for method, path, is_open in operations(document)]


def filled(path: str) -> str:
    for name, value in {"database": "plant", "db": "plant", "bucket": "plant", "table": "pump", "measurement": "pump"}.items():
        path = path.replace("{" + name + "}", value)
    while "{" in path:
        path = path[: path.index("{")] + "1" + path[path.index("}") + 1 :]
    return path


def test_no_operation_does_anything_without_a_token(told_nothing: Server) -> None:
    server = told_nothing
    secret = server.token
    other = secret[:-1] + ("1" if secret.endswith("0") else "0")
    words = ["", "Bearer", "Bearer ", "Bearer x", "Token " + secret[:-1], "Bearer " + other, "Basic !", "Basic " + base64.b64encode(b"admin:admin").decode()]
    asked = endpoints(server)
    assert len(asked) > 80
    for number, (method, path, is_open) in enumerate(asked):
        word = words[number % len(words)] or "none"
        status, answer = server.ask(method, filled(path), b"" if method in ("POST", "PUT", "PATCH") else None, authorization=word)
        check(server, f"{method} {path}", status, answer)
        assert is_open or status == 401, (method, path, status, answer)


def test_a_token_of_another_database_reaches_nothing(told_nothing: Server) -> None:
    server = told_nothing
    wanted = {"name": "mine", "databases": ["mine"], "permissions": ["read", "write", "delete"]}
    token = json.loads(server.post("/api/v1/auth/tokens", json.dumps(wanted).encode())[1])["token"]
    for method, path, is_open in endpoints(server):
        if is_open or "/auth/" in path:
            continue
        body = b'pump,id=7 note="changed" 1' if "write" in path else b'{"database": "plant", "name": "plant", "bucket": "plant", "db": "plant", "sql": "DROP TABLE plant.pump", "q": "x"}'
        for at in (filled(path), filled(path) + "?db=plant&bucket=plant&org=x&database=plant&name=plant&q=DROP%20DATABASE%20plant"):
            status, answer = server.ask(method, at, body if method in ("POST", "PUT", "PATCH") else None, authorization=f"Bearer {token}", x_arc_database="plant")
            check(server, f"{method} {at}", status, answer)
    reaching = [
        "SELECT * FROM plant.pump",
        "WITH p AS (SELECT * FROM plant.pump) SELECT * FROM p",
        "SELECT (SELECT max(note) FROM plant.pump)",
        "SELECT * FROM mine.x JOIN plant.pump USING (id)",
        "EXPLAIN ANALYZE SELECT * FROM plant.pump",
        "INSERT INTO mine.x SELECT * FROM plant.pump",
        "SELECT * FROM _internal.audit",
        "DROP TABLE plant.pump",
        "DELETE FROM plant.pump WHERE id = '7'",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'plant'",
        "SHOW TABLES FROM plant",
        *(f"SELECT * FROM '{file}'" for file in ("/etc/passwd", "../admin.token", "data/tokens.json", f"{server.data_dir}/admin.token")),
        *(f"SELECT * FROM {read}('/etc/passwd')" for read in ("read_csv", "read_text", "read_parquet", "glob", "read_blob")),
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/arc-attack.csv'",
        "COPY mine.x FROM '/etc/passwd'",
        "SET datafusion.catalog.location = '/'",
        "ATTACH '/etc/passwd' AS x",
        "LOAD httpfs",
        "SELECT getenv('HOME')",
    ]
    for sql in reaching:
        status, answer = server.post("/api/v1/query", json.dumps({"sql": sql}).encode(), authorization=f"Bearer {token}", x_arc_database="mine")
        check(server, sql, status, answer)
        assert status in (400, 403, 404, 405) or json.loads(answer)["data"] == [], (sql, status, answer)
        assert b"root:" not in answer, sql
    assert not Path("/tmp/arc-attack.csv").exists()


def test_what_no_client_sends_is_refused(told_nothing: Server) -> None:
    server = told_nothing
    auth = f"Authorization: Bearer {server.token}\r\n"
    write = "POST /write?db=plant HTTP/1.1\r\nHost: localhost\r\n"
    smuggled = f"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\n{auth}Content-Length: 30\r\n\r\n" + '{"sql":"DROP TABLE plant.pump"}'
    raw: dict[str, bytes] = {
        "two lengths": f"{write}Content-Length: 0\r\nContent-Length: 5\r\n\r\nx v=1".encode(),
        "length and chunks": f"{write}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled[:60]}".encode(),
        "chunks, spelled oddly": f"{write}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n".encode(),
        "a negative length": f"{write}Content-Length: -1\r\n\r\n".encode(),
        "a length beyond all memory": f"{write}Content-Length: 18446744073709551615\r\n\r\n".encode(),
        "a chunk beyond all memory": f"{write}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".encode(),
        "a head that does not end": b"GET /health HTTP/1.1\r\n" + b"x: " + b"a" * 400_000,
        "a thousand heads": b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
        "a folded head": b"GET /api/v1/databases HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer\r\n x\r\n\r\n",
        "a path out of the server": b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "the same, encoded": b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "NUL in the path": b"GET /api/v1/databases%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a proxy's request": b"GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a tunnel": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a line break in a name": b"GET /ping?x=%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a%0d%0aSet-Cookie: a\r\n\r\n",
        "TLS to a plain port": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
        "HTTP/2 and noise": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(range(256)) * 8,
        "HTTP/2 settings for ever": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 50_000,
        "nothing but noise": bytes(range(256)) * 256,
        "a bomb of zeros": f"{write}{auth}Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n".encode() + b"\x1f\x8b\x08\x00" + bytes(16),
    }
    for what, request in raw.items():
        began = time.monotonic()
        answer = exchange(server, request)
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1") else 0
        check(server, what, status, answer)
        assert not 200 <= status < 300 or b"/ping" in request or b"/health" in request, (what, answer)
        assert b"\nset-cookie" not in answer.lower(), (what, answer)
        assert time.monotonic() - began < 60, what


def exchange(server: Server, request: bytes) -> bytes:
    """Sends bytes as they are; returns what comes back before the server closes, or half a second passes without any."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=0.5) as connection:
        try:
            connection.sendall(request)
            while part := connection.recv(65_536):
                answer += part
        except OSError:
            pass
    return answer
