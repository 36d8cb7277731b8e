"""Request bodies: the same numbered points in each format that the server takes."""

from __future__ import annotations

import gzip
import random
import struct
import sys
from array import array
from dataclasses import dataclass
from typing import Union

DAY_NS = 86_400 * 10**9
# A Monday; points are spread over the days after it.
START_NS = 1_699_833_600 * 10**9
# Points of a writer are this far apart: a whole number of microseconds, which some formats carry.
STEP_NS = 1_000

# A table that has a retention, and how many days of it; half of its points are older from the start.
EXPIRING, RETENTION_DAYS = "expiring", 30
# Tables of one writer each, which drops it now and then.
DROPPED = ("dropped_0", "dropped_1", "dropped_2", "dropped_3")
# Tables of today with a few points each: as many as a flush needs to put them into a pack, and small merges into another.
SMALL = tuple(f"small_{number:02}" for number in range(80))
# Tables whose rows are known by tag and time, and one that appends: in it a row stored twice is counted twice.
TABLES = ("lines", "more_lines", "rows", "keyed", "appended", EXPIRING, *DROPPED, *SMALL)


@dataclass(frozen=True)
class Points:
    """`count` points of one writer, numbered from `first`, in one request."""

    request: int
    writer: int
    first: int
    count: int
    day: int

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.count)

    @property
    def sum(self) -> int:
        return (2 * self.first + self.count - 1) * self.count // 2

    @property
    def start_ns(self) -> int:
        return START_NS + self.day * DAY_NS

    def time_ns(self, number: int) -> int:
        return self.start_ns + number * STEP_NS


def lines(points: Points, tables: tuple[str, ...]) -> bytes:
    """Line protocol in nanoseconds; the points take turns in `tables`."""
    constant = f",r={points.request}i,w={points.writer}i"
    heads = [f"{table},writer=w{points.writer} n=" for table in tables]
    out = []
    for n in points.numbers:
        out.append(f"{heads[n % len(heads)]}{n}i,v={n / 2}{constant} {points.time_ns(n)}")
    return "\n".join(out).encode()


def head(base_small: int, base_large: int, count: int) -> bytes:
    """The first bytes of a MessagePack map or array."""
    return bytes([base_small | count]) if count < 16 else struct.pack(">BI", base_large, count)


def text(value: str) -> bytes:
    data = value.encode()
    return bytes([0xA0 | len(data)]) + data


def numbers(kind: str, values: Union[range, list[int], list[float]]) -> bytes:
    """64-bit numbers of MessagePack, `q` or `d`, without a Python call for each."""
    raw = array(kind, values)
    if sys.byteorder == "little":
        raw.byteswap()
    data = raw.tobytes()
    out = bytearray(9 * len(raw))
    out[0::9] = (b"\xd3" if kind == "q" else b"\xcb") * len(raw)
    for i in range(8):
        out[i + 1 :: 9] = data[i::8]
    return bytes(out)


def columns(points: Points, table: str) -> bytes:
    """One map of columns, with times in microseconds."""
    count, micros = points.count, points.time_ns(points.first) // 1_000
    step = STEP_NS // 1_000
    values = {
        "time": numbers("q", range(micros, micros + count * step, step)),
        "writer": text(f"w{points.writer}") * count,
        "n": numbers("q", points.numbers),
        "v": numbers("d", [n / 2 for n in points.numbers]),
        "r": numbers("q", [points.request]) * count,
        "w": numbers("q", [points.writer]) * count,
    }
    body = head(0x80, 0xDF, 2) + text("m") + text(table) + text("columns") + head(0x80, 0xDF, len(values))
    for name, cells in values.items():
        body += text(name) + head(0x90, 0xDD, count) + cells
    return body


def rows(points: Points, table: str) -> bytes:
    """An array of one map for each point, with times in microseconds."""
    start = head(0x80, 0xDF, 4) + text("m") + text(table)
    start += text("tags") + head(0x80, 0xDF, 1) + text("writer") + text(f"w{points.writer}") + text("t") + b"\xd3"
    constant = text("r") + numbers("q", [points.request]) + text("w") + numbers("q", [points.writer])
    fields = text("fields") + head(0x80, 0xDF, 4) + constant + text("n") + b"\xd3"
    out = [head(0x90, 0xDD, points.count)]
    for n in points.numbers:
        out.append(start + struct.pack(">q", points.time_ns(n) // 1_000) + fields)
        out.append(struct.pack(">q", n) + text("v") + struct.pack(">Bd", 0xCB, n / 2))
    return b"".join(out)


@dataclass
class Body:
    """A request as it is sent."""

    path: str
    headers: dict[str, str]
    data: bytes
    # Points that each table gets.
    tables: tuple[str, ...]


def draw(random: random.Random, points: Points, own: tuple[str, ...] = ()) -> Body:
    """Chooses a format; sometimes compressed. With tables of their `own` it is line protocol for these."""
    names = ["v1", "v2", "native"] + ([] if own else ["columns", "columns", "keyed", "rows"])
    name = random.choice(names)
    headers = {"x-arc-database": "storm"} if random.random() < 0.5 else {}
    query = {"v1": "db", "v2": "bucket"}.get(name, "database") + "=storm"
    tables = {"columns": ("appended",), "keyed": ("keyed",), "rows": ("rows",)}.get(name, ("lines",))
    if name in ("v1", "v2", "native"):
        if own:
            tables = own
        elif random.random() < 0.3:
            tables = ("lines", "more_lines")
        path = {"v1": "/write", "v2": "/api/v2/write", "native": "/api/v1/write/line-protocol"}[name]
        data = lines(points, tables)
    else:
        path = "/api/v1/write/msgpack"
        data = rows(points, "rows") if name == "rows" else columns(points, tables[0])
    if name == "keyed":
        headers["x-arc-tags"] = "writer"
    if random.random() < 0.2:
        data = gzip.compress(data, 1)
        headers["content-encoding"] = "gzip"
    return Body(f"{path}?{query}", headers, data, tables)
