"""Columns of every type of Arrow and Parquet, at extreme values and widths, as bodies.

A body is for the door of writes, as Arrow, or for that of imports, as Parquet.

Pure: bytes only. The same body each time, so that its name is enough to send it again.
"""

from __future__ import annotations

import io
import math
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacks import wide_value
from extreme_values import MANY_ROWS, WIDE_COLUMNS

# Counts that a body has once, so that they are found in its bytes and replaced by larger ones.
MARKED_ROWS = 1_009
MARKED_SIZE = 1_013
HUGE_SIZES = (2**31 - 1, -1, 2**30, 0)
HUGE_ROWS = (2**62, 2**63 - 1, -1, 2**31, 0, 1_010)
MEBIBYTE = 1 << 20
LONG_TEXT = "a" * MEBIBYTE
# What a body may be without being refused for its length.
LONGEST_BODY = 32 * MEBIBYTE

WRONG_KEYS = "dictionary of keys that are none"

Maker = Callable[[int], pa.Array]
Writer = Callable[[pa.Table], bytes]


@dataclass(frozen=True)
class Body:
    """A body: what it has, the door that it is for, and how its bytes are made."""

    name: str
    door: str
    make: Callable[[], bytes]
    is_wide: bool = False


def repeated(type_: pa.DataType, *values: object) -> Maker:
    """Returns a maker of arrays in which values and a null take turns."""

    def make(rows: int) -> pa.Array:
        cells = [*values, None]
        return pa.array([cells[n % len(cells)] for n in range(rows)], type_)

    return make


def integers() -> dict[str, Maker]:
    makers = {}
    for bits in (8, 16, 32, 64):
        makers[f"int{bits}"] = repeated(
            getattr(pa, f"int{bits}")(), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1
        )
        makers[f"uint{bits}"] = repeated(getattr(pa, f"uint{bits}")(), 0, 2**bits - 1)
    return makers


def counted(type_: pa.DataType, bits: int) -> Maker:
    """Returns a maker of times at the ends of the integers that they are made of."""
    whole = repeated(
        pa.int64() if bits == 64 else pa.int32(), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, 1
    )
    return lambda rows: whole(rows).view(type_)


def times() -> dict[str, Maker]:
    makers = {"date32": counted(pa.date32(), 32), "date64": counted(pa.date64(), 64)}
    for unit in ("s", "ms", "us", "ns"):
        makers[f"timestamp {unit}"] = counted(pa.timestamp(unit), 64)
        makers[f"timestamp {unit} in a zone"] = counted(pa.timestamp(unit, "Europe/Berlin"), 64)
        makers[f"duration {unit}"] = counted(pa.duration(unit), 64)
    makers |= {f"time32 {unit}": counted(pa.time32(unit), 32) for unit in ("s", "ms")}
    makers |= {f"time64 {unit}": counted(pa.time64(unit), 64) for unit in ("us", "ns")}
    makers["a zone that is none"] = counted(pa.timestamp("s", "Nowhere"), 64)
    makers["interval"] = repeated(
        pa.month_day_nano_interval(), (2**31 - 1, -(2**31), 2**63 - 1), (0, 0, 0)
    )
    return makers


def decimals() -> dict[str, Maker]:
    makers = {}
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 76)):
        make = getattr(pa, f"decimal{bits}")
        for scale in (0, digits):
            ends = [Decimal((sign, (9,) * digits, -scale)) for sign in (0, 1)]
            makers[f"decimal{bits} of scale {scale}"] = repeated(
                make(digits, scale), *ends, Decimal(0)
            )
        makers[f"decimal{bits} of a negative scale"] = ones(make(digits, -100))
    return makers


def ones(type_: pa.DataType) -> Maker:
    """Returns a maker of decimals whose unscaled value is 1."""
    one = (1).to_bytes(type_.bit_width // 8, "little")
    return lambda rows: pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(one * rows)])


def texts() -> dict[str, Maker]:
    values = ("", "a", "\0", "🦀", "x" * 10_000, "' OR 1=1 --")
    blobs = tuple(value.encode() for value in values)
    makers = {
        "text": repeated(pa.string(), *values), "large text": repeated(pa.large_string(), *values),
        "binary": repeated(pa.binary(), *blobs),
        "large binary": repeated(pa.large_binary(), *blobs),
        "text views": repeated(pa.string_view(), *values),
        "binary views": repeated(pa.binary_view(), *blobs),
        "fixed binary": repeated(pa.binary(2), b"\0\0", b"\xff\xff"),
        "fixed binary of nothing": repeated(pa.binary(0), b""),
        "wide fixed binary": repeated(pa.binary(65_536), b"\0" * 65_536),
    }  # fmt: skip
    return makers | {
        "a text for all rows": one_text,
        "views of one text": one_view,
        "bytes that are no text": no_text,
    }


def one_text(rows: int) -> pa.Array:
    """A dictionary of one long text: as large as `rows` times that, once written out."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, dtype=np.int8)), pa.array([LONG_TEXT])
    )


def one_view(rows: int) -> pa.Array:
    """Views each of which has the whole of one buffer."""
    view = struct.pack("<i4sii", MEBIBYTE, b"aaaa", 0, 0)
    buffers = [None, pa.py_buffer(view * rows), pa.py_buffer(LONG_TEXT.encode())]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers)


def no_text(rows: int) -> pa.Array:
    offsets = np.arange(0, 2 * rows + 1, 2, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xff\xfe" * rows)]
    )


def lists() -> dict[str, Maker]:
    pair = pa.struct([("a", pa.int64()), ("b", pa.string())])
    makers = {
        "lists": repeated(pa.list_(pa.int64()), [], [None], list(range(1_000))),
        "large lists": repeated(pa.large_list(pa.float64()), [], [math.nan]),
        "list views": repeated(pa.list_view(pa.int64()), [], [1]),
        "large list views": repeated(pa.large_list_view(pa.int64()), [], [1]),
        "lists of structures": repeated(pa.list_(pair), [], [{"a": 1, "b": ""}], [None]),
        "structures": repeated(pair, {"a": 1, "b": "x"}, {}),
        "structures of nothing": repeated(pa.struct([]), {}),
        "structures of two fields of one name": twice_named,
        "maps": repeated(pa.map_(pa.string(), pa.int64()), [], [("a", 1), ("a", 2)]),
        "maps by lists": repeated(pa.map_(pa.list_(pa.int8()), pa.int8()), [([1], 1)]),
        "lists of texts in a dictionary": repeated(pa.list_(pa.dictionary(pa.int8(), pa.string())),
            ["a", None]),
        "views of one list": one_list, "nulls": lambda rows: pa.nulls(rows),
        "lists of nulls": repeated(pa.list_(pa.null()), [None] * 100_000, []),
    }  # fmt: skip
    for levels in (2, 31, 32, 33, 64, 500):
        makers[f"lists of {levels} levels"] = nested_list(levels)
        makers[f"structures of {levels} levels"] = nested_structure(levels)
    return makers


def twice_named(rows: int) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array([1] * rows, pa.int64())] * 2, names=["a", "a"])


def one_list(rows: int) -> pa.Array:
    """Views each of which has the whole of one list."""
    offsets, sizes = pa.array([0] * rows, pa.int32()), pa.array([MEBIBYTE] * rows, pa.int32())
    return pa.ListViewArray.from_arrays(offsets, sizes, pa.array(np.zeros(MEBIBYTE, dtype=np.int8)))


def nested_list(levels: int) -> Maker:
    def make(rows: int) -> pa.Array:
        array = pa.array([1] * rows, pa.int64())
        for _ in range(levels):
            array = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), array)
        return array

    return make


def nested_structure(levels: int) -> Maker:
    def make(rows: int) -> pa.Array:
        array = pa.array([1] * rows, pa.int64())
        for _ in range(levels):
            array = pa.StructArray.from_arrays([array], names=["a"])
        return array

    return make


def fixed_lists() -> dict[str, Maker]:
    """Lists whose declared size is what makes them large: of nulls, of nothing, or of no rows."""

    def of(size: int, child: Callable[[int], pa.Array]) -> Maker:
        def make(rows: int) -> pa.Array:
            values = child(0)
            is_free = pa.types.is_null(values.type) and rows <= 1
            if is_free or size * rows <= MEBIBYTE:
                values = child(size * rows)
            type_ = pa.list_(values.type, size)
            return pa.Array.from_buffers(
                type_, rows if len(values) else 0, [None], children=[values]
            )

        return make

    def integers_of(count: int) -> pa.Array:
        return pa.array(np.zeros(count, dtype=np.int8))

    makers = {
        f"fixed lists of {size}": of(size, integers_of)
        for size in (0, 1, 16, 65_536, 65_537, 2**31 - 1)
    }
    makers |= {
        f"fixed lists of {size} nulls": of(size, pa.nulls) for size in (16, 65_536, 2**31 - 1)
    }
    makers["fixed lists in fixed lists"] = lambda rows: pa.array(
        [[[0] * 32] * 32] * rows, pa.list_(pa.list_(pa.int8(), 32), 32)
    )
    return makers


def others() -> dict[str, Maker]:
    return {
        "booleans": repeated(pa.bool_(), True, False),
        "halves": repeated(pa.float16(), *map(np.float16, (math.inf, math.nan, -0.0, 65504.0))),
        "floats": repeated(pa.float32(), math.inf, -math.inf, math.nan, -0.0, 3.4028234e38),
        "doubles": repeated(pa.float64(), math.inf, -math.inf, math.nan, -0.0, 5e-324,
            1.7976931348623157e308),
        "dictionary": repeated(pa.dictionary(pa.int8(), pa.string()), "", "a"),
        "dictionary by uint64": repeated(pa.dictionary(pa.uint64(), pa.binary()), b"", b"a"),
        "dictionary of integers": repeated(pa.dictionary(pa.int32(), pa.int64()), 2**63 - 1, 0),
        "runs": runs, "runs of texts": text_runs,
        "sparse unions": lambda rows: union(rows, is_dense=False),
        "dense unions": lambda rows: union(rows, is_dense=True),
        WRONG_KEYS: wrong_keys,
    }  # fmt: skip


def runs(rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(
        pa.array([rows] if rows else [], pa.int32()), pa.array([7] if rows else [], pa.int64())
    )


def text_runs(rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(
        pa.array([rows] if rows else [], pa.int64()),
        pa.array([LONG_TEXT] if rows else [], pa.string()),
    )


def union(rows: int, is_dense: bool) -> pa.Array:
    kinds, children = (
        pa.array([n % 2 for n in range(rows)], pa.int8()),
        [pa.array([1] * rows, pa.int64()), pa.array(["a"] * rows)],
    )
    if is_dense:
        return pa.UnionArray.from_dense(kinds, pa.array(range(rows), pa.int32()), children)
    return pa.UnionArray.from_sparse(kinds, children)


def wrong_keys(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array([(-1, 0, 99)[n % 3] for n in range(rows)], pa.int8()), pa.array(["a"]), safe=False
    )


def columns() -> dict[str, Maker]:
    """Returns a maker of arrays for each type."""
    return integers() | times() | decimals() | texts() | lists() | fixed_lists() | others()


# Bodies.


def table_of(array: pa.Array, width: int = 1) -> pa.Table:
    """Returns a table with a time for each row, and this column as often as `width`."""
    rows = len(array)
    return pa.table(
        {"time": pa.array(range(rows), pa.int64()), **{f"v{n}": array for n in range(width)}}
    )


def arrow_stream(table: pa.Table, compression: str | None = None) -> bytes:
    body = io.BytesIO()
    with pa.ipc.new_stream(
        body, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return body.getvalue()


def parquet_file(table: pa.Table) -> bytes:
    body = io.BytesIO()
    # A dictionary of one long text stays one.
    limit = 4 * MEBIBYTE
    pq.write_table(
        table, body, compression="zstd", store_schema=True, dictionary_pagesize_limit=limit
    )
    return body.getvalue()


WRITERS: dict[str, Writer] = {"arrow": arrow_stream, "parquet": parquet_file}
SHAPES = ((0, 1), (1, 1), (3, 1), (MANY_ROWS, 1), (1, WIDE_COLUMNS))
LARGE_CELLS = (
    "a text for all rows", "views of one text", "views of one list", "runs of texts",
    "wide fixed binary", "lists of nulls", "fixed lists of 65536", "fixed lists of 65537",
    "fixed lists of 65536 nulls", "fixed lists of 2147483647 nulls",
)  # fmt: skip
"""Types whose values are large, but for those of which Arrow keeps one for all rows."""
ONE_FOR_ALL = (
    "arrow: a text for all rows",
    "arrow: views of one text",
    "arrow: views of one list",
    "arrow: runs of texts",
)


def has_shape(door: str, name: str, rows: int, width: int) -> bool:
    """Returns whether a body of this many rows and columns can be made in little memory."""
    if name == WRONG_KEYS and door == "parquet":
        # What writes it reads the keys.
        return False
    if name not in LARGE_CELLS:
        return width == 1 or not name.endswith((" 64 levels", " 500 levels"))
    return width == 1 and (rows < MANY_ROWS or f"{door}: {name}" in ONE_FOR_ALL)


def values(name: str, maker: Maker) -> Iterator[Body]:
    """Yields bodies of one type for both doors, of each number of rows and columns.

    A body is empty where no format has it: a union in Parquet, say, or one that is too long.
    """
    for door, write in WRITERS.items():
        for rows, width in (shape for shape in SHAPES if has_shape(door, name, *shape)):

            def make(rows: int = rows, width: int = width, write: Writer = write) -> bytes:
                try:
                    body = write(table_of(maker(rows), width))
                except (pa.ArrowException, OSError):
                    return b""
                return body if len(body) <= LONGEST_BODY else b""

            yield Body(f"{door}: {name}, {rows} x {width}", door, make, is_wide=width > 1)


def marked(format_: str, old: int, new: int, width: int) -> bytes:
    """Returns a body in which a count of `width` bytes is another one, wherever it stands."""
    lists = (
        pa.array([[0] * MARKED_SIZE] * 3, pa.list_(pa.int8(), MARKED_SIZE))
        if old == MARKED_SIZE
        else None
    )
    table = table_of(lists if lists is not None else pa.array([""] * MARKED_ROWS))
    code = {4: "<i", 8: "<q"}[width]
    return WRITERS[format_](table).replace(struct.pack(code, old), struct.pack(code, new))


def lies() -> Iterator[Body]:
    """Yields bodies whose declared sizes are not those of what they hold."""
    for rows in HUGE_ROWS:
        make = partial(marked, "arrow", MARKED_ROWS, rows, 8)
        yield Body(f"arrow: {rows} rows declared", "arrow", make)
    for size in HUGE_SIZES:
        make = partial(marked, "arrow", MARKED_SIZE, size, 4)
        yield Body(f"arrow: lists of {size} declared", "arrow", make)
    yield from compressed_lies()


def compressed_lies() -> Iterator[Body]:
    zeros = table_of(pa.array(np.zeros(MARKED_ROWS * 1_000, dtype=np.int8)))
    for compression in ("lz4", "zstd"):
        yield Body(f"arrow: {compression}", "arrow", partial(arrow_stream, zeros, compression))
        for length in (2**62, 2**40, -2, 1):
            old = struct.pack("<q", MARKED_ROWS * 1_000)

            def make(
                compression: str = compression, old: bytes = old, length: int = length
            ) -> bytes:
                body = arrow_stream(zeros, compression)
                at = body.rfind(old, 0, len(body) // 2) if body.count(old) < 2 else body.rfind(old)
                return body[:at] + struct.pack("<q", length) + body[at + 8 :]

            yield Body(f"arrow: {compression} of {length} bytes declared", "arrow", make)


def changed(count: int) -> Iterator[Body]:
    """Yields good bodies in which some bytes are others: the same ones each time."""
    table = pa.table(
        {"time": pa.array(range(9), pa.int64()), "s": ["x"] * 9, "l": pa.array([[1, 2]] * 9),
            "f": pa.array([[1, 2]] * 9, pa.list_(pa.int64(), 2)),
         "d": pa.array(["a"] * 9).dictionary_encode(),
         "m": pa.array([[("a", 1)]] * 9, pa.map_(pa.string(), pa.int64()))}
    )  # fmt: skip
    for door, write in WRITERS.items():
        whole = write(table)
        for number in range(count):

            def make(whole: bytes = whole, number: int = number) -> bytes:
                draw, body = random.Random(number), bytearray(whole)
                for _ in range(draw.randrange(1, 9)):
                    # The end of a file of Parquet is what describes the rest.
                    end = min(len(body), 1_000) if draw.random() < 0.5 else len(body)
                    at = len(body) - 1 - draw.randrange(end)
                    body[at] = draw.choice((0, 0xFF, 0x7F, 0x80, draw.randrange(256)))
                return bytes(body)

            yield Body(f"{door}: changed bytes {number}", door, make)


def all_bodies() -> list[Body]:
    """Returns all bodies, without making their bytes."""
    found = [body for name, maker in columns().items() for body in values(name, maker)]
    found += [
        Body(f"arrow: one list of {flags} flags, compressed", "arrow", partial(wide_value, flags))
        for flags in (65_536, 100_000_000)
    ]
    return found + list(lies()) + list(changed(100))
