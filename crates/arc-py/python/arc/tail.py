"""Rows as they are acknowledged, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from arc.readable import Result
from arc.rows import rows_of

if TYPE_CHECKING:
    from arc._arc import Table
    from arc.store import Store
    from arc.types import Seconds

LONG = 3_600.0
"""Seconds that one call waits for rows; who waits for ever calls again."""
AT_A_TIME = 1.0
"""The same of a thread that a task waits for: so long the end of a program that has left its task may take."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TailSource(Protocol):
    """What has the rows of a tail."""

    def take(self, seconds: float) -> Table | None: ...
    def close(self) -> None: ...


class Tail:
    """The rows of a table as they are acknowledged, each once and in that order. Made by :meth:`arc.Engine.tail`.

    An iterator of dicts, and an asynchronous one, which waits for rows and ends once it is closed. A row is as it was
    written: of fields that the write did not have it is ``None``, a row that overwrites another one comes as well, and a
    column that is new is there from then on. Deletes are not seen.

    It raises, after the last row that it has: ``BusyError`` if rows came faster than they were taken and more than 16 MiB
    waited (rows would be left out; begin another one), ``NotFoundError`` if the table was dropped, ``ClosedError`` if the
    engine was closed.
    """

    __slots__ = ("_closed", "_rows", "_source", "_store", "_taking", "_thread", "__weakref__")

    def __init__(self, store: Store, source: TailSource) -> None:
        # While there is a tail its engine is not forgotten, which would close it.
        self._store = store
        self._source = source
        self._rows: deque[dict[str, Any]] = deque()
        self._taking: asyncio.Future[Table | None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._closed = False

    def next(self, timeout: Seconds | None = None) -> Result | None:
        """Returns the rows that have come, as an :class:`arc.Result`; ``None`` if none came within ``timeout`` seconds.

        For many rows: they are not made values of Python one by one. Rows that the iteration has taken and not yielded
        stay with it.

        >>> with engine.tail("plant.pump") as tail:
        ...     written = engine.write_lp("plant", "pump,id=7 rpm=1470i")
        ...     tail.next(timeout=5).fetchall()[0][1:]
        ('7', 1470)
        """
        if isinstance(timeout, timedelta):
            timeout = timeout.total_seconds()
        table = self._take() if timeout is None else self._source.take(timeout)
        return None if table is None else Result(table)

    def batches(self) -> Iterator[Result]:
        """Yields the rows that have come, as often as some have, until it is closed."""
        while (table := self._take()) is not None:
            yield Result(table)

    def _take(self) -> Table | None:
        """Waits for rows; ``None`` once it is closed."""
        while not self._closed:
            table = self._source.take(LONG)
            if table is not None:
                return table
        return None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while not self._rows:
            table = self._take()
            if table is None:
                raise StopIteration
            self._rows.extend(dicts_of(table))
        return self._rows.popleft()

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while not self._rows:
            if self._closed:
                raise StopAsyncIteration
            if self._taking is None:
                self._taking = asyncio.ensure_future(self._take_soon())
            # A task that is cancelled here leaves the rows to the next one.
            taking = self._taking
            table = await asyncio.shield(taking)
            if self._taking is taking:
                self._taking = None
                if table is not None:
                    self._rows.extend(dicts_of(table))
        return self._rows.popleft()

    async def _take_soon(self) -> Table | None:
        # On a thread of its own: a tail occupies one all the time, and a pool may have fewer.
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "arc-tail")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._source.take, AT_A_TIME)

    def close(self) -> None:
        """Ends it, also for who waits for rows."""
        self._closed = True
        self._source.close()

    def __enter__(self) -> Tail:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __array__(self, *_: object, **__: object) -> Any:
        # Libraries that make an array of any iterator would wait for ever.
        raise TypeError("an arc.Tail has no end: next().df() returns the rows that have come")

    def __reduce__(self) -> Any:
        raise TypeError("an arc.Tail cannot be pickled: it is what one process is told; begin one in the other")


def dicts_of(table: Table) -> list[dict[str, Any]]:
    """Returns the rows as dicts."""
    names = table.schema.names
    return [dict(zip(names, row)) for row in rows_of(table)]


def nanoseconds_of(since: Any) -> int | None:
    """Returns a time as nanoseconds since 1970; those without a zone are UTC."""
    if since is None or (isinstance(since, int) and not isinstance(since, bool)):
        return since
    as_unit = getattr(since, "as_unit", None)
    if as_unit is not None and hasattr(since, "value"):
        # One of pandas, which has digits below the microsecond.
        return int(as_unit("ns").value)
    if isinstance(since, datetime):
        aware = since if since.tzinfo is not None else since.replace(tzinfo=timezone.utc)
        past = aware - EPOCH
        return (past.days * 86_400 + past.seconds) * 10**9 + past.microseconds * 1_000
    if type(since).__module__ == "numpy" and type(since).__name__ == "datetime64":
        return int(since.astype("datetime64[ns]").astype("int64"))
    raise TypeError(f"since must be a datetime, or an int of nanoseconds since 1970, not {type(since).__name__}")
