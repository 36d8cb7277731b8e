"""A writer of single rows, which go to a table in batches."""

from __future__ import annotations

import atexit
import os
import threading
import time as clock
import uuid
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any

from arc.columns import EXPECTED, column, kind_of, of_rows, plain, times
from arc.errors import InvalidInputError, SchemaConflictError
from arc.unstorable import refuse_new_name, refuse_surrogates

if TYPE_CHECKING:
    from arc.store import Store
    from arc.types import Durability, Seconds

Row = dict[str, Any]
LIKE = {"date": "time", "float": "number", "int": "number"}
MOST_SPLITS = 1_000
"""Batches that are split in one call, in search of the rows that cannot be stored; what is left then waits for the next ``flush``."""
OPEN: weakref.WeakSet[Writer] = weakref.WeakSet()
"""Writers that were not closed. One that has rows is kept by its thread."""


@atexit.register
def close_all() -> None:
    """Stores the rows of writers that a program has left open."""
    with ExitStack() as closing:
        for writer in list(OPEN):
            if writer._process == os.getpid():
                closing.callback(writer.close)


class Writer:
    """Gathers rows from any number of threads, and writes them in batches. Made by ``engine.writer(…)``; a context manager.

    ``add`` looks at the values, so that a row which cannot be stored is refused there. A batch is written by the ``add``
    that fills it, by a thread of the writer once its first row is old enough, by ``flush``, and at the end of the block, of
    the engine and of the program. If that fails, its error is raised by the call that wrote, or by the next one if it was
    the thread; the rows stay, and are sent again, under one name, so that none is stored twice. Rows that the table refuses,
    for the types of its columns, are set aside: all others are stored, and ``flush`` tries these again, for the table may
    have changed. ``discard`` gives up what is not written.
    """

    def __init__(
        self,
        store: Store,
        table: str,
        *,
        tags: Sequence[str] | None,
        database: str,
        durability: Durability | None,
        rows: int,
        bytes: int,
        seconds: Seconds,
    ) -> None:
        self._age = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
        for name, value in (("rows", rows), ("bytes", bytes), ("seconds", self._age)):
            if not value > 0:
                raise InvalidInputError(f"{name} is {value}; a number above 0 was expected")
        if isinstance(tags, str):
            raise TypeError("tags must be a list of str, not str")
        self._store = store
        self._table = table
        self._tags = list(tags or ())
        self._settings: dict[str, Any] = {
            "tags": None if tags is None else self._tags,
            "database": database,
            "durability": durability,
        }
        self._most = (rows, bytes)
        self._lock = threading.Condition()
        # One batch is on its way at a time, so that rows keep their order.
        self._writing = threading.Lock()
        self._rows: list[Row] = []
        self._bytes = 0
        self._since = 0.0
        self._kinds: dict[str, str] = {}
        # Names of columns that were seen to be good.
        self._names: set[str] = set()
        # On their way: each with the name under which it is sent, however often.
        self._batches: list[tuple[str, list[Row]]] = []
        self._refused: list[Row] = []
        self._failed: Exception | None = None
        store._writers.add(self)
        OPEN.add(self)
        self._closed = False
        self._process = os.getpid()
        self._thread: threading.Thread | None = None
        self.written = 0
        """Rows that were written."""

    def add(self, row: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        """Adds a row: ``time``, tags and fields by their names, in a mapping or as arguments. Without a time it is now."""
        if self._append(row, values):
            self._write_all()

    def _append(self, row: Mapping[str, Any] | None, values: Mapping[str, Any]) -> bool:
        """Adds a row; returns whether its batch is to be written now. Waits for nothing."""
        given, size = self._checked({**row, **values} if row is not None else values)
        given["time"] = self._time(given.get("time"))
        for tag in self._tags:
            given.setdefault(tag, None)
        with self._lock:
            self._raise_failed()
            if self._closed:
                raise InvalidInputError("the writer is closed; make a new one")
            if len(self._refused) >= self._most[0]:
                raise InvalidInputError(
                    f"the table has refused {len(self._refused)} rows; flush() tries these again, and says why, discard() gives them up"
                )
            self._check_kinds(given)
            if not self._rows:
                self._since = clock.monotonic()
                self._start()
            self._rows.append(given)
            self._bytes += size
            return len(self._rows) >= self._most[0] or self._bytes >= self._most[1]

    def _write_all(self) -> None:
        with self._writing:
            self._write()

    def flush(self) -> None:
        """Writes all rows that were added, and returns once they are as durable as asked for."""
        with self._writing:
            with self._lock:
                refused, self._refused = self._refused, []
            if refused:
                self._batches.append((str(uuid.uuid4()), refused))
            self._write()

    def _write(self) -> None:
        """Writes what is there but for rows that were set aside; raises why more were, once all others are stored."""
        self._failed, refusal, splits = None, None, 0
        while True:
            if not self._batches:
                with self._lock:
                    if not self._rows:
                        break
                    self._batches.append((str(uuid.uuid4()), self._rows))
                    self._rows, self._bytes = [], 0
            key, rows = self._batches[0]
            try:
                self._store.write(self._table, of_rows(rows, keep=("time", *self._tags)), idempotency_key=key, **self._settings)
                self.written += len(rows)
                del self._batches[0]
            except (InvalidInputError, SchemaConflictError) as error:
                if len(rows) > 1 and splits < MOST_SPLITS:
                    # All of it was refused for some of it.
                    middle, splits = len(rows) // 2, splits + 1
                    self._batches[:1] = [(str(uuid.uuid4()), part) for part in (rows[:middle], rows[middle:])]
                    continue
                refusal = refusal or error
                with self._lock:
                    self._refused += rows
                    del self._batches[0]
        if refusal is not None:
            raise refusal

    def discard(self) -> int:
        """Gives up the rows that are not written, and returns how many there were."""
        with self._writing, self._lock:
            given_up = self.pending
            self._batches, self._rows, self._refused, self._bytes, self._failed = [], [], [], 0, None
            self._kinds = {}
            return given_up

    @property
    def pending(self) -> int:
        """Rows that were added and are not written."""
        return len(self._rows) + len(self._refused) + sum(len(rows) for _, rows in self._batches)

    def close(self) -> None:
        """Writes what is there, and ends the writer."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        self._store._writers.discard(self)
        OPEN.discard(self)
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _time(self, value: Any) -> int:
        """Returns the time of a row in nanoseconds, so that rows may have it in any form."""
        if value is None:
            return clock.time_ns()
        kind, (found,) = column("time", [value])
        if kind not in ("int", "time") or found is None:
            raise InvalidInputError(f"'time' is {value!r}; a datetime, or nanoseconds since 1970 as int, was expected")
        return int(found)

    def _checked(self, row: Mapping[str, Any]) -> tuple[Row, int]:
        """Returns a row as it is kept, and about how many bytes it takes; refuses what no column holds."""
        size, checked = 0, {}
        for name, value in row.items():
            if name not in self._names:
                if not isinstance(name, str):
                    raise InvalidInputError(f"a name of a column is a {type(name).__name__}, str was expected: {name!r}")
                refuse_new_name(name)
                self._names.add(name)
            value = plain(value)
            kind = kind_of(value)
            if not kind:
                raise InvalidInputError(f"{name!r} is a {type(value).__name__}; {EXPECTED} was expected")
            if kind == "text":
                refuse_surrogates(name, [value])
            elif kind in ("time", "date"):
                times(name, [value])
                # Rows of a batch may have them with and without a zone.
                if kind == "date":
                    value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
                elif isinstance(value, datetime) and value.tzinfo is None:
                    value = value.replace(tzinfo=timezone.utc)
            elif kind == "int" and not -(2**63) <= value < 2**64:
                raise InvalidInputError(f"{name!r} is an integer of more than 64 bits: {value}")
            if kind not in ("text", "null") and name in self._tags:
                raise InvalidInputError(f"{name!r} is a {type(value).__name__}, and a tag; a str was expected")
            checked[name] = value
            size += 8 + (len(value) if kind in ("text", "bytes") else 0)
        return checked, size

    def _check_kinds(self, row: Row) -> None:
        """Refuses a row whose values do not go with those before it. Nothing of it is kept then."""
        found = {}
        for name, value in row.items():
            kind = kind_of(value)
            kind = LIKE.get(kind, kind)
            if kind not in ("null", self._kinds.get(name, kind)):
                raise InvalidInputError(f"{name!r} is a {type(value).__name__}, and was {self._kinds[name]} before")
            if kind != "null":
                found[name] = kind
        self._kinds.update(found)

    def _raise_failed(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._flush_old, name="arc-writer", daemon=True)
            self._thread.start()
        self._lock.notify_all()

    def _flush_old(self) -> None:
        while True:
            with self._lock:
                while not self._closed and not self._rows and not self._batches:
                    self._lock.wait()
                if self._closed:
                    return
                left = self._since + self._age - clock.monotonic()
                if left > 0:
                    self._lock.wait(left)
                    continue
            try:
                with self._writing:
                    self._write()
            # Whatever it is: without this thread nothing would be written by its age any more.
            except Exception as error:
                with self._lock:
                    self._failed = error
                    # Not at once again: the next call is told.
                    self._lock.wait(self._age)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<arc.Writer of {self._table!r}, {self.written} rows written, {self.pending} pending>"
