"""A writer of single rows, which go to a table in batches."""

from __future__ import annotations

import threading
import time as clock
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from arc.columns import EXPECTED, column, kind_of, of_rows
from arc.errors import Error, InvalidInputError

if TYPE_CHECKING:
    from arc.store import Store
    from arc.types import Durability, Seconds

Row = dict[str, Any]
LIKE = {"date": "time", "float": "number", "int": "number"}


class Writer:
    """Gathers rows from any number of threads, and writes them in batches. Made by ``engine.writer(…)``; a context manager.

    ``add`` looks at the values, so that a row which cannot be stored is refused there. A batch is written by the ``add``
    that fills it, by a thread of the writer once its first row is old enough, by ``flush``, and at the end of the block. If
    that fails, its error is raised by the call that wrote, or by the next one if it was the thread; the rows stay, and are
    sent again, under one name, so that none is stored twice. ``discard`` gives them up.
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
        self._settings: dict[str, Any] = {
            "tags": None if tags is None else list(tags),
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
        self._batch: tuple[str, list[Row]] | None = None
        self._failed: Error | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self.written = 0
        """Rows that were written."""

    def add(self, row: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        """Adds a row: ``time``, tags and fields by their names, in a mapping or as arguments. Without a time it is now."""
        given = {**row, **values} if row is not None else values
        size = self._checked(given)
        given = {**given, "time": self._time(given.get("time"))}
        with self._lock:
            self._raise_failed()
            if self._closed:
                raise InvalidInputError("the writer is closed; make a new one")
            self._check_kinds(given)
            if not self._rows:
                self._since = clock.monotonic()
                self._start()
            self._rows.append(given)
            self._bytes += size
            is_full = len(self._rows) >= self._most[0] or self._bytes >= self._most[1]
        if is_full:
            self.flush()

    def flush(self) -> None:
        """Writes all rows that were added, and returns once they are as durable as asked for."""
        with self._writing:
            self._failed = None
            while True:
                if self._batch is None:
                    with self._lock:
                        if not self._rows:
                            return
                        self._batch = (str(uuid.uuid4()), self._rows)
                        self._rows, self._bytes = [], 0
                key, rows = self._batch
                table = of_rows(rows, keep=("time",))
                self._store.write(self._table, table, idempotency_key=key, **self._settings)
                self.written += len(rows)
                self._batch = None

    def discard(self) -> int:
        """Gives up the rows that are not written, and returns how many there were."""
        with self._writing, self._lock:
            given_up = self.pending
            self._batch, self._rows, self._bytes, self._failed = None, [], 0, None
            self._kinds = {}
            return given_up

    @property
    def pending(self) -> int:
        """Rows that were added and are not written."""
        batch = self._batch
        return len(self._rows) + (len(batch[1]) if batch else 0)

    def close(self) -> None:
        """Writes what is there, and ends the writer."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
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

    def _checked(self, row: Mapping[str, Any]) -> int:
        """Refuses values that no column holds; returns about how many bytes the row takes."""
        size = 0
        for name, value in row.items():
            if not isinstance(name, str):
                raise InvalidInputError(f"a name of a column is a {type(name).__name__}, str was expected: {name!r}")
            if not kind_of(value) and type(value).__module__ != "numpy":
                raise InvalidInputError(f"{name!r} is a {type(value).__name__}; {EXPECTED} was expected")
            size += 8 + (len(value) if isinstance(value, (str, bytes)) else 0)
        return size

    def _check_kinds(self, row: Mapping[str, Any]) -> None:
        """Refuses a row whose values do not go with those before it. Nothing of it is kept then."""
        found = {}
        for name, value in row.items():
            item = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
            kind = kind_of(item)
            if type(value).__name__ == "datetime64":
                kind = "time"
            if kind == "int" and not -(2**63) <= item < 2**64:
                raise InvalidInputError(f"{name!r} is an integer of more than 64 bits: {item}")
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
                while not self._closed and not self._rows:
                    self._lock.wait()
                if self._closed:
                    return
                left = self._since + self._age - clock.monotonic()
                if left > 0:
                    self._lock.wait(left)
                    continue
            try:
                self.flush()
            except Error as error:
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
