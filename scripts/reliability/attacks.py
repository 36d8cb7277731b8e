"""Requests that are made to stop a server: a corpus, and a generator that goes on.

Each attack runs against a server whose limits are those of `hostile.py`, keeps its connections until it is told that it is over,
and counts what it was answered. Only what a client may send: no signals, no files.
"""

from __future__ import annotations

import gzip
import http.client
import io
import json
import random
import socket
import struct
import threading
from collections import Counter
from typing import Callable, Optional

import numpy as np
import pyarrow as pa
from server import Server

# What a request may take by the server's limits, and how long a client that is too slow may keep a connection.
STATEMENT_S = 1.0
BODY_S = 2.5


class Attack:
    """One attack: `act` runs on as many threads as it asks for, each with its number."""

    def __init__(
        self,
        name: str,
        limit_s: float,
        act: Callable[["Attack", Server, int], None],
        together: int = 4,
        is_worst: bool = False,
        stores: bool = False,
    ) -> None:
        self.name, self.limit_s, self.act, self.together, self.is_worst = name, limit_s, act, together, is_worst
        # Whether it is a good write of what takes memory for as long as it is there.
        self.stores = stores
        self.over = threading.Event()
        self.answers: Counter[str] = Counter()

    def run(self, server: Server) -> None:
        threads = [threading.Thread(target=self._one, args=(server, number), daemon=True) for number in range(self.together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    def _one(self, server: Server, number: int) -> None:
        try:
            self.act(self, server, number)
        except (OSError, http.client.HTTPException) as error:
            self.answers[type(error).__name__] += 1


def prepare(server: Server, database: str) -> None:
    """Writes what the statements ask for: a few rows, and a table as wide as they come."""
    rows = "\n".join(f"m,host=h{n % 10} v={n},w={n}i {n + 1}" for n in range(100_000))
    wide = "wide " + ",".join(f"c{n}=1" for n in range(4_000)) + " 1"
    for body in [rows, wide]:
        status, answer = server.request("POST", f"/write?db={database}", body.encode())
        if status != 204:
            raise RuntimeError(f"{status} {answer!r}")


# Statements.


def asked(door: str, database: str, sql: str) -> tuple[str, str, bytes]:
    """Returns the request that sends a statement through a door."""
    if door == "v3":
        return "POST", "/api/v3/query_sql", json.dumps({"db": database, "q": sql}).encode()
    if door == "delete":
        return "POST", "/api/v1/delete", json.dumps({"database": database, "measurement": "m", "where": sql}).encode()
    path = {"json": "/api/v1/query", "arrow": "/api/v1/query/arrow", "estimate": "/api/v1/query/estimate"}[door]
    return "POST", f"{path}?db={database}", json.dumps({"sql": sql}).encode()


def statement(name: str, database: str, sql: str, door: str = "json", is_worst: bool = False) -> Attack:
    def act(attack: Attack, server: Server, _: int) -> None:
        method, path, body = asked(door, database, sql)
        connection = server.connect(timeout=30)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            attack.answers[str(answer.status)] += 1
            answer.read(1 << 20)
        finally:
            connection.close()

    return Attack(f"{name} ({door})", STATEMENT_S, act, is_worst=is_worst)


def doubling(levels: int, step: str, first: str, last: str) -> str:
    """Returns a chain of expressions each of which mentions the one before as `step` says."""
    names = "".join(f", c{n} AS ({step.format(before=f'c{n - 1}')})" for n in range(1, levels))
    return f"WITH c0 AS (SELECT {first} AS a){names} {last.format(last=f'c{levels - 1}')}"


TWICE = "SELECT x.a FROM {before} x, {before} y"


def statements() -> dict[str, str]:
    wide = ", ".join(f"wide t{n}" for n in range(500))
    return {
        "names that double": doubling(40, TWICE, "1", "SELECT a FROM {last}"),
        "names that double, explained": "EXPLAIN " + doubling(26, TWICE, "1", "SELECT a FROM {last}"),
        "names that double, in subqueries": doubling(
            40, "SELECT a FROM {before} WHERE a IN (SELECT a FROM {before})", "1", "SELECT a FROM {last}"
        ),
        "names that double, in a union": doubling(
            40, "SELECT a FROM {before} UNION ALL SELECT a FROM {before}", "1", "SELECT count(*) FROM {last}"
        ),
        "types after each other": f"INSERT INTO m (time) VALUES ({'INTERVAL ' * 45})",
        "types after each other, created": f"CREATE TABLE t (time {'INTERVAL ' * 45})",
        "types after each other, asked": f"SELECT {'INTERVAL ' * 45}",
        "texts that double": doubling(
            38, "SELECT a || a AS a FROM {before}", "arrow_cast('aaaaaaaa', 'LargeUtf8')", "SELECT length(a) FROM {last}"
        ),
        "texts that double by concat": doubling(38, "SELECT concat(a, a) AS a FROM {before}", "'aaaaaaaa'", "SELECT length(a) FROM {last}"),
        "texts that grow by replace": doubling(30, "SELECT replace(a, 'a', 'aa') AS a FROM {before}", "'aaaaaaaa'", "SELECT length(a) FROM {last}"),
        "lists that double": doubling(36, "SELECT array_concat(a, a) AS a FROM {before}", "[1, 2, 3, 4]", "SELECT array_length(a) FROM {last}"),
        "lists in lists": doubling(40, "SELECT make_array(a, a) AS a FROM {before}", "[1]", "SELECT a FROM {last}"),
        "a text that repeats": "SELECT length(repeat(repeat(repeat('aaaaaaaa', 1000000), 1000), 1000))",
        "a text that is filled": "SELECT length(lpad('a', 2000000000, 'b')), length(rpad('a', 2000000000, 'b'))",
        "columns of one name": "SELECT " + "1," * 400_000 + "1",
        "columns of own names": "SELECT " + ",".join(f"1 AS a{n}" for n in range(60_000)),
        "wide tables joined": f"SELECT 1 FROM {wide}",
        "wide tables joined from the right": "SELECT 1 FROM wide t0 " + " ".join(f"RIGHT JOIN wide t{n} ON true" for n in range(1, 200)),
        "parentheses": "SELECT " + "(" * 400_000 + "1" + ")" * 400_000,
        "a long sum": "SELECT " + "1+" * 400_000 + "1",
        "a long condition": "SELECT * FROM m WHERE " + " AND ".join(f"v > {n}" for n in range(60_000)),
        "a long choice": "SELECT * FROM m WHERE " + " OR ".join(f"v = {n} AND w = {n}" for n in range(20_000)),
        "not after not": "SELECT " + "NOT " * 300_000 + "true",
        "a long list": f"SELECT * FROM m WHERE w IN ({','.join(map(str, range(140_000)))})",
        "cases in cases": "SELECT " + "CASE WHEN true THEN " * 20_000 + "1" + " END" * 20_000,
        "selects in selects": "SELECT * FROM " + "(SELECT * FROM " * 30_000 + "m" + ")" * 30_000,
        "many unions": " UNION ALL ".join(["SELECT 1"] * 60_000),
        "a cross join": "SELECT count(*) FROM m a, m b, m c WHERE a.v + b.v + c.v = 0.5",
        "a recursion without end": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "a recursion that doubles": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT a.n FROM r a, (VALUES (1), (2)) b) SELECT count(*) FROM r",
        "a series without end": "SELECT sum(value) FROM generate_series(1, 9223372036854775807)",
        "a series as a list": "SELECT array_length(generate_series(1, 9223372036854775807))",
        "a window over all": "SELECT sum(x) FROM (SELECT sum(a.v) OVER () AS x FROM m a, m b)",
        "an increase by rows": (
            "SELECT max(d) FROM (SELECT increase(value::double, to_timestamp(value)) OVER (ORDER BY value) d "
            "FROM generate_series(1, 1000000))"
        ),
        "many centroids": "SELECT approx_percentile_cont(v, 0.5, 100000000000000) FROM m",
        "types that multiply": "SELECT CAST(NULL AS BIGINT[10000000][100000000])",
        "types in types": "SELECT arrow_cast(NULL, '" + "List(" * 2_000 + "Int8" + ")" * 2_000 + "')",
        "brackets after each other": "SELECT CAST(NULL AS BIGINT" + "[]" * 5_000 + ")",
        "all values as a list": "SELECT array_agg(a.v) FROM m a, m b",
        "all values as a text": "SELECT length(string_agg(a.host, ',')) FROM m a, m b",
        "many groups": "SELECT count(*) FROM (SELECT a.w * 100000 + b.w AS g, sum(a.v) FROM m a, m b GROUP BY 1)",
        "grouping sets": "SELECT 1 FROM wide GROUP BY CUBE(" + ",".join(f"c{n}" for n in range(25)) + ")",
        "a regular expression": "SELECT count(*) FROM m WHERE host ~ '" + "(a?){200}" * 20 + "a{200}'",
        "a like": "SELECT count(*) FROM m WHERE host LIKE '" + "%a" * 5_000 + "'",
        "quotes without end": "SELECT '" + "'" * 500_001,
        "comments in comments": "/*" * 200_000 + " SELECT 1 " + "*/" * 200_000,
        "a condition that is deep": "SELECT * FROM m WHERE " + "(v = 1 AND " * 20_000 + "true" + ")" * 20_000,
    }


WORST = {
    "names that double", "names that double, explained", "types after each other", "texts that double", "columns of one name",
    "wide tables joined", "an increase by rows", "a cross join", "many centroids", "types that multiply",
}  # fmt: skip


# Bodies and heads.


def raw(server: Server, timeout: float = 10) -> socket.socket:
    host, port = server.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=timeout)


def status_of(connection: socket.socket, attack: Attack) -> None:
    """Counts what a connection is answered, if anything."""
    try:
        head = connection.recv(4_096)
        attack.answers[head[9:12].decode(errors="replace") or "closed"] += 1
    except OSError as error:
        attack.answers[type(error).__name__] += 1


def post(path: str, length: Optional[int], **headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def held(name: str, first: Callable[[int], bytes], drop: bytes, count: int, limit_s: float = BODY_S, is_worst: bool = False) -> Attack:
    """Many connections that send a beginning, and a little more now and then."""

    def act(attack: Attack, server: Server, number: int) -> None:
        connections = []
        try:
            for at in range(count):
                connection = raw(server)
                connections.append(connection)
                connection.sendall(first(number * count + at))
            while not attack.over.wait(0.5):
                for connection in connections:
                    try:
                        connection.sendall(drop)
                    except OSError:
                        attack.answers["closed"] += 1
            for connection in connections[:5]:
                connection.settimeout(0.2)
                status_of(connection, attack)
        finally:
            for connection in connections:
                connection.close()

    return Attack(name, limit_s, act, is_worst=is_worst)


def sent(name: str, path: str, body: bytes, is_worst: bool = False, stores: bool = False, **headers: str) -> Attack:
    """A whole body, by many at once."""

    def act(attack: Attack, server: Server, _: int) -> None:
        connection = server.connect(timeout=60)
        try:
            connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            attack.answers[str(connection.getresponse().status)] += 1
        finally:
            connection.close()

    return Attack(name, BODY_S, act, together=8, is_worst=is_worst, stores=stores)


def zstd_of(byte: bytes, size: int, window_log: int = 20) -> bytes:
    """Returns a frame of zstd without its size: `size` times a byte, four bytes for each 128 KiB (RFC 8878)."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00" + bytes([(window_log - 10) << 3]))
    blocks = max(1, size >> 17)
    for block in range(blocks):
        # How long it is, that it is one byte again and again, and whether it is the last.
        head = ((1 << 17) << 3) | (1 << 1) | (block == blocks - 1)
        frame += head.to_bytes(3, "little") + byte
    return bytes(frame)


def wide_value(flags: int, columns: int = 1) -> bytes:
    """Returns a row in which each column has one list of so many flags, compressed."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(flags, dtype=bool)), flags)
    table = pa.table({"time": pa.array([1], pa.int64()), **{f"x{n}": values for n in range(columns)}})
    body = io.BytesIO()
    with pa.ipc.new_stream(body, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return body.getvalue()


def unread(name: str, path: str, body: bytes, count: int, is_worst: bool = False) -> Attack:
    """Clients that ask for much and read nothing."""

    def act(attack: Attack, server: Server, _: int) -> None:
        connections = []
        try:
            for _ in range(count):
                connection = raw(server)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                connections.append(connection)
                connection.sendall(post(path, len(body)) + body)
            attack.over.wait(60)
        finally:
            for connection in connections:
                connection.close()

    return Attack(name, BODY_S + STATEMENT_S, act, is_worst=is_worst)


def bodies(database: str) -> list[Attack]:
    write, pack = f"/write?db={database}", f"/api/v1/write/msgpack?db={database}"
    arrow, form = f"/api/v1/write/arrow?db={database}&table=a", f"/api/v1/import/csv?db={database}&measurement=i"
    multipart = {"Content_Type": "multipart/form-data; boundary=x"}
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\ntime,v\n'
    csv = json.dumps({"sql": "SELECT * FROM m a, m b"}).encode()
    return [
        held("bodies announced and not sent", lambda _: post(write, 100_000_000) + b"m v=1\n", b"m", 100, is_worst=True),
        held("small bodies announced and not sent", lambda n: post(write, 10 + n * 37) + b"m", b"", 200),
        held("large bodies that stop", lambda _: post(write, 90_000_000) + b"#" * 4_000_000, b"#", 8, is_worst=True),
        held("bodies in chunks that drip", lambda _: post(write, None) + b"5\r\nm v=1\r\n", b"1\r\n#\r\n", 200),
        held("statements that drip", lambda _: post(f"/api/v1/query?db={database}", 1_000_000) + b'{"sql":"', b"x", 200),
        held("imports that drip", lambda _: post(form, 400_000_000, **multipart) + part, b"1", 50, is_worst=True),
        held("imports whose part has no end", lambda _: post(form, 400_000_000, **multipart) + b"--x\r\nA: " + b"b" * 2_000_000, b"b", 20),
        held("compressed bodies that stop", lambda _: post(write, 1_000_000, Content_Encoding="gzip") + gzip.compress(b"#" * 99)[:20], b"\0", 100),
        sent("zstd without its size", write, zstd_of(b"#", 100 << 20), is_worst=True),
        sent("zstd without its size, a large window", write, zstd_of(b"#", 100 << 20, window_log=26)),
        sent("zstd beyond every limit", write, zstd_of(b"#", 4 << 30)),
        sent("zstd frames after each other", write, zstd_of(b"#", 1 << 20) * 1_000),
        sent("gzip of much", write, gzip.compress(b"#" * (99 << 20), 1)),
        sent("gzip of many members", write, gzip.compress(b"#" * (1 << 20)) * 1_000),
        sent("gzip that lies about its size", write, gzip.compress(b"#" * (64 << 20))[:-4] + b"\1\0\0\0"),
        sent("statements in gzip", f"/api/v1/query?db={database}", gzip.compress(b" " * (99 << 20), 1)),
        sent("MessagePack in itself", pack, b"\x91" * 1_000_000),
        sent("MessagePack of many", pack, b"\xdd\xff\xff\xff\xff" * 1_000),
        sent("MessagePack of a long text", pack, b"\x82\xa1m\xa1x\xa7columns\x81\xa1v\xdb\xff\xff\xff\xff"),
        sent("Arrow of one value as wide as a disk", arrow, wide_value(100_000_000), is_worst=True),
        sent("Arrow of many values that are as wide as may be", arrow, wide_value(1 << 16, 16), stores=True),
        sent("Arrow of nothing", arrow, b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 100_000),
        sent("Arrow of a file's end", arrow, b"ARROW1\0\0" + b"\xff" * 100_000 + b"\xff\xff\xff\x7fARROW1"),
        sent("JSON in itself", f"/api/v1/query?db={database}", b"[" * 1_000_000),
        sent("JSON of many keys", f"/api/v1/query?db={database}", b"{" + b",".join(b'"%d":1' % n for n in range(100_000)) + b"}"),
        sent("tables, one for each line", write, b"\n".join(b"t%d v=1 1" % n for n in range(5_000)), stores=True),
        sent("columns, one for each line", write, b"\n".join(b"cols c%d=1 1" % n for n in range(50_000)), stores=True),
        sent("series, one for each line", write, b"\n".join(b"s,a=%d,b=%d v=1 1" % (n, n) for n in range(50_000)), stores=True),
        sent("one line", write, b"m v=1" + b",v=1" * 5_000_000),
        sent("blanks", write, b" " * 50_000_000),
        sent("commas", write, b"," * 50_000_000),
        held("heads that drip", lambda _: b"POST /write HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a", 400, limit_s=2, is_worst=True),
        held("heads without end", lambda _: b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3_000, b"A: b\r\n", 50, limit_s=2),
        held("connections that say nothing", lambda _: b"", b"", 200, limit_s=2),
        held("heads of HTTP/2 that are none", lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1_000, b"\0", 100, limit_s=2),
        unread("answers that nobody reads", f"/api/v1/query?db={database}&format=csv", csv, 5, is_worst=True),
        unread("answers whole that nobody reads", f"/api/v1/query/msgpack?db={database}", csv, 5),
    ]


# Flight, without a library: the frames of HTTP/2 that matter.


def h2_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def h2_text(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 127
    return bytes([len(data)]) + data


def h2_open(server: Server, window: int) -> socket.socket:
    """Begins a connection of HTTP/2 that lets each answer have `window` bytes."""
    connection = raw(server)
    settings = struct.pack(">HI", 4, window)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2_frame(4, 0, 0, settings) + h2_frame(4, 1, 0))
    return connection


def h2_call(stream: int, call: str, authority: str = "localhost") -> bytes:
    """Returns the head of a call: fields without an index, as RFC 7541 has them."""
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", f"/arrow.flight.protocol.FlightService/{call}"),
        (":authority", authority), ("content-type", "application/grpc"), ("te", "trailers"),
    ]  # fmt: skip
    return h2_frame(1, 4, stream, b"".join(b"\0" + h2_text(name) + h2_text(value) for name, value in fields))


def h2_data(stream: int, data: bytes) -> bytes:
    pieces = [data[at : at + 16_000] for at in range(0, len(data), 16_000)] or [b""]
    return b"".join(h2_frame(0, 0, stream, piece) for piece in pieces)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def flight(name: str, call: str, message: bytes, streams: int, count: int, window: int = 1 << 20, is_worst: bool = False) -> Attack:
    """Calls whose message begins and does not end, on many streams of many connections."""

    def act(attack: Attack, server: Server, number: int) -> None:
        connections = []
        try:
            for _ in range(count):
                connection = h2_open(server, window)
                connections.append(connection)
                for stream in range(1, 2 * streams, 2):
                    connection.sendall(h2_call(stream, call) + h2_data(stream, message))
            attack.over.wait(60)
            for connection in connections[:2]:
                connection.settimeout(0.5)
                attack.answers["answered" if connection.recv(1 << 16) else "closed"] += 1
        finally:
            for connection in connections:
                connection.close()

    return Attack(f"Flight: {name}", BODY_S, act, is_worst=is_worst)


def flights(database: str) -> list[Attack]:
    begun = b"\0" + struct.pack(">I", 99 << 20)
    path = b"\x0a" + bytes([len(b"\x08\x01\x1a\x01f")]) + b"\x08\x01\x1a\x01f"
    # A descriptor, then a header of 90 MiB of which a little comes; the windows of the server hold the rest back.
    put = begun + path + b"\x12" + varint(90 << 20) + b"h" * 30_000
    ticket = b"\0" + struct.pack(">I", 90 << 20) + b"\x0a" + varint(90 << 20) + b"t" * 30_000
    sql = json.dumps({"database": database, "sql_query": "SELECT * FROM m a, m b"}).encode()
    asked = b"\x0a" + varint(len(sql)) + sql
    asked = b"\0" + struct.pack(">I", len(asked)) + asked
    return [
        flight("messages that stop", "DoPut", put, 20, 5, is_worst=True),
        flight("tickets that stop", "DoGet", ticket, 20, 5),
        flight("actions that stop", "DoAction", ticket, 20, 5),
        flight("exchanges", "DoExchange", put, 20, 5),
        flight("handshakes", "Handshake", ticket, 50, 5),
        flight("answers that nobody takes", "DoGet", asked, 2, 2, window=0, is_worst=True),
        flight("no message", "DoPut", b"", 50, 5),
        flight("garbage", "DoPut", b"\0" + struct.pack(">I", 1_000) + b"\xff" * 1_000, 50, 5),
        flight("garbage as a ticket", "DoGet", b"\0" + struct.pack(">I", 1_000) + b"\xff" * 1_000, 50, 5),
    ]


def corpus(database: str) -> list[Attack]:
    """Returns all attacks that are known."""
    found = [statement(name, database, sql, is_worst=name in WORST) for name, sql in statements().items()]
    doors = ["v3", "arrow", "estimate"]
    found += [statement(name, database, statements()[name], door) for name in sorted(WORST) for door in doors]
    deep = {"a deep condition": "(" * 100_000 + "v = 1" + ")" * 100_000, "types in a condition": "v = " + "INTERVAL " * 45}
    found += [statement(name, database, text, "delete") for name, text in deep.items()]
    return found + bodies(database) + flights(database)


# The generator.

PIECES = [
    "(", ")", ",", " SELECT ", " FROM m ", " WHERE ", " AND ", " OR ", " NOT ", " UNION ALL ", " JOIN m ON ", " GROUP BY ", "1", "v", "host",
    " || ", " + ", " IN ", " CASE WHEN ", " END ", " OVER (", "'a'", " INTERVAL ", " ARRAY[", "]", " CAST(", " AS ", "[1]", "generate_series(1,9)",
]  # fmt: skip
FUNCTIONS = ["concat(a, a)", "a || a", "repeat(a, 9)", "replace(a, 'a', 'aaa')", "lpad(a, 999, a)", "upper(a)", "concat_ws(a, a, a)", "regexp_replace(a, 'a', 'aa', 'g')"]
STEPS = [
    TWICE, "SELECT a FROM {before} UNION SELECT a FROM {before}", "SELECT a FROM {before} WHERE a IN (SELECT a FROM {before})",
    "SELECT (SELECT max(a) FROM {before}) AS a FROM {before}", "SELECT a FROM {before} x JOIN {before} y USING (a)",
]  # fmt: skip


def drawn_statement(draw: random.Random) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        step = draw.choice(STEPS)
        return draw.choice(["", "EXPLAIN "]) + doubling(draw.randrange(2, 60), step, "1", "SELECT a FROM {last}")
    if kind == 1:
        step = f"SELECT {draw.choice(FUNCTIONS)} AS a FROM {{before}}"
        first = draw.choice(["'a'", "arrow_cast('a', 'LargeUtf8')", "arrow_cast('a', 'Utf8View')", "host"])
        return doubling(draw.randrange(2, 60), step, first, "SELECT length(a) FROM {last}").replace("SELECT host", "SELECT 'h'")
    if kind == 2:
        piece, count = draw.choice(PIECES), 1 << draw.randrange(2, 16)
        return "SELECT " + piece * count + "1" + draw.choice(["", ")" * count, " FROM m"])
    if kind == 3:
        return "SELECT " + "".join(draw.choices(PIECES, k=1 << draw.randrange(2, 14)))
    if kind == 4:
        tables = ", ".join(f"{draw.choice(['m', 'wide'])} t{n}" for n in range(draw.randrange(2, 300)))
        return f"SELECT {draw.choice(['1', 'count(*)', '*'])} FROM {tables}"
    sql = draw.choice(list(statements().values()))[: 1 << draw.randrange(6, 20)]
    at = draw.randrange(len(sql))
    return sql[:at] + draw.choice(PIECES) + sql[at + draw.randrange(4) :]


def drawn_body(draw: random.Random) -> bytes:
    size = 1 << draw.randrange(0, 24)
    body = draw.choice([draw.randbytes(min(size, 1 << 16)), bytes([draw.randrange(256)]) * size, b"m,a=b v=1 1\n" * (size // 12)])
    return draw.choice([lambda b: b, lambda b: gzip.compress(b, 1), lambda b: gzip.compress(b, 1) * 3, lambda b: zstd_of(b[:1] or b"#", size * 16)])(body)


def generated(draw: random.Random, database: str) -> Attack:
    """Returns the next attack that a seed makes."""
    kind = draw.randrange(8)
    if kind < 5:
        return statement("generated", database, drawn_statement(draw), draw.choice(["json", "v3", "arrow", "estimate"]))
    paths = [f"/write?db={database}", f"/api/v1/write/msgpack?db={database}", f"/api/v1/write/arrow?db={database}&table=g", "/api/v1/query"]
    path, body = draw.choice(paths), drawn_body(draw)
    if kind == 5:
        return sent("generated body", path, body)
    if kind == 6:
        count, drop = draw.randrange(1, 100), body[: draw.randrange(2)]
        return held("generated body that stops", lambda _: post(path, len(body) + 1 + draw.randrange(9)) + body[: 1 << 16], drop, count)
    call = draw.choice(["DoPut", "DoGet", "DoAction", "GetFlightInfo", "DoExchange", "Handshake"])
    begun = b"\0" + struct.pack(">I", draw.randrange(1 << draw.randrange(1, 28))) + body[:30_000]
    return flight(f"generated {call}", call, begun, draw.randrange(1, 30), 4, window=draw.choice([0, 1, 65_535]))
