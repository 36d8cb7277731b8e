"""The same calls for asyncio: on threads, so that the loop goes on, and ended when the task is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from arc import scopes
from arc.errors import InvalidInputError
from arc.readable import Result

if TYPE_CHECKING:
    from datetime import datetime
    from types import FrameType

    from arc.receipts import Executed, FlushReport, Written
    from arc.relation import Parameters, Relation
    from arc.store import AnswerLike, Store
    from arc.tail import Tail
    from arc.threads import Threads
    from arc.types import Durability, Precision, Rows, Seconds
    from arc.writer import Writer

T = TypeVar("T")


class Async:
    """The calls of an engine that wait, to be awaited. Made by ``engine.aio``.

    They run on threads of the engine, up to 32 at once. As an asynchronous context manager it
    closes the engine.

    >>> import asyncio
    >>> async def count():
    ...     async with arc.open("./other").aio as engine:
    ...         await engine.write_lp("plant", "pump,id=7 rpm=1450i")
    ...         return (await engine.sql("plant", "SELECT count(*) FROM pump")).fetchone()
    >>> import arc
    >>> asyncio.run(count())
    (1,)
    """

    __slots__ = ("_store", "_threads")

    def __init__(self, store: Store, threads: Threads) -> None:
        self._store = store
        self._threads = threads

    # Reading.

    def sql(
        self, database: str, query: str, params: Parameters = None
    ) -> Coroutine[Any, Any, Result]:
        """Runs a query as :meth:`arc.Engine.sql` does, and returns its rows in memory. Cancelling the task ends the query."""
        # Where it is called, and not where it runs: that is the event loop, in a task of its own.
        return self._sql(database, query, params, scopes.calling_frame())

    async def _sql(
        self, database: str, query: str, params: Parameters, frame: FrameType | None
    ) -> Result:
        planned = partial(self._store._planned, database, query, params, frame)
        return await self.read(await self._call(planned))

    async def read(self, relation: Relation) -> Result:
        """Runs a relation and returns its rows in memory. Cancelling the task ends the query."""
        answer = await self._call(relation._open)
        read = partial(self._store._read, answer, relation.query)
        return Result(await self._cancelling(answer, read))

    def batches(
        self, database: str, query: str, params: Parameters = None
    ) -> AsyncIterator[Result]:
        """Yields the rows of a query part by part, while they are computed.

        Leaving the loop ends the query.

        >>> import asyncio
        >>> async def count():
        ...     return sum([len(part) async for part in engine.aio.batches("plant", "FROM pump")])
        >>> asyncio.run(count())
        2
        """
        return self._batches(database, query, params, scopes.calling_frame())

    async def _batches(
        self, database: str, query: str, params: Parameters, frame: FrameType | None
    ) -> AsyncIterator[Result]:
        planned = partial(self._store._planned, database, query, params, frame)
        relation = await self._call(planned)
        answer = await self._call(relation._open)
        read_next = partial(self._store._read_next, answer, relation.query)
        try:
            while (part := await self._cancelling(answer, read_next)) is not None:
                yield Result(part)
        finally:
            answer.cancel()

    async def _cancelling(self, answer: AnswerLike, call: Callable[[], T]) -> T:
        """Runs a call that reads an answer, and ends the answer if the task is cancelled."""
        reading = asyncio.ensure_future(self._call(call))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            answer.cancel()
            reading.add_done_callback(_forget)
            raise

    async def tail(self, name: str, *, since: datetime | int | None = None) -> Tail:
        """Begins a tail as :meth:`arc.Engine.tail` does, for ``async for``: a task that waits for rows may be cancelled, and
        none is lost by that."""
        return await self._call(partial(self._store.tail, name, since=since))

    async def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""
        return await self._call(self._store.databases)

    async def tables(self, database: str) -> list[str]:
        """Returns the names of the tables of ``database``, sorted."""
        return await self._call(partial(self._store.tables, database))

    # Writing. What has begun is done even if the task is cancelled, and before the engine closes.

    async def write(
        self,
        table: str,
        data: Rows,
        *,
        tags: Sequence[str] | None = None,
        time: str = "time",
        precision: Precision = "ns",
        durability: Durability | None = None,
        database: str = "default",
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes as :meth:`arc.Engine.write` does.

        What has begun is done even if the task is cancelled.
        """
        write = partial(
            self._store.write, table, data, tags=tags, time=time, precision=precision,
            durability=durability, database=database, idempotency_key=idempotency_key,
        )  # fmt: skip
        return await self._change(write)

    async def write_lp(
        self,
        database: str,
        data: str | bytes | bytearray | Iterable[str | bytes],
        *,
        precision: Precision = "ns",
        durability: Durability | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Writes as :meth:`arc.Engine.write_lp` does.

        What has begun is done even if the task is cancelled.
        """
        write = partial(
            self._store.write_lp, database, data, precision=precision,
            durability=durability, idempotency_key=idempotency_key,
        )  # fmt: skip
        return await self._change(write)

    def writer(
        self,
        table: str,
        *,
        tags: Sequence[str] | None = None,
        database: str = "default",
        durability: Durability | None = None,
        rows: int = 10_000,
        bytes: int = 4 << 20,
        seconds: Seconds = 1.0,
    ) -> AsyncWriter:
        """Returns a writer as :meth:`arc.Engine.writer` does, whose calls are to be awaited.

        >>> import asyncio
        >>> async def write():
        ...     async with engine.aio.writer("pump", tags=["id"], database="plant") as pump:
        ...         await pump.add(id="9", rpm=1490)
        ...     return pump.written
        >>> asyncio.run(write())
        1
        """
        writer = self._store.writer(
            table, tags=tags, database=database, durability=durability,
            rows=rows, bytes=bytes, seconds=seconds,
        )  # fmt: skip
        return AsyncWriter(self, writer)

    def execute(
        self, database: str, query: str, params: Parameters = None
    ) -> Coroutine[Any, Any, Executed]:
        """Runs a statement as :meth:`arc.Engine.execute` does.

        What has begun is done even if the task is cancelled.
        """
        frame = scopes.calling_frame()
        return self._change(partial(self._store._executed, database, query, params, frame))

    async def delete(self, database: str, table: str, where: str) -> None:
        """Deletes as :meth:`arc.Engine.delete` does.

        What has begun is done even if the task is cancelled.
        """
        await self._change(partial(self._store.delete, database, table, where))

    async def flush(self) -> FlushReport:
        """Writes what is in memory to data files, as :meth:`arc.Engine.flush` does.

        What has begun is done even if the task is cancelled. A server flushes by itself.
        """
        from arc.engine import Engine

        if not isinstance(self._store, Engine):
            raise InvalidInputError("a connection has no flush(): a server flushes by itself")
        return await self._change(self._store.flush)

    async def close(self) -> None:
        """Ends the use of the engine, once what writes has ended."""
        await self._call(self._store.close)

    async def _call(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call)

    async def _change(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call, is_write=True)

    async def __aenter__(self) -> Async:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncWriter:
    """A writer of single rows whose calls are to be awaited. Made by ``engine.aio.writer(…)``.

    Its rows, batches and errors are those of :class:`arc.Writer`. ``add`` waits where its row makes
    a batch full, and not otherwise; a row is added even if the task is cancelled meanwhile.
    """

    __slots__ = ("_aio", "_writer")

    def __init__(self, aio: Async, writer: Writer) -> None:
        self._aio = aio
        self._writer = writer

    async def add(self, row: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        """Adds a row as :meth:`arc.Writer.add` does."""
        if self._writer._append(row, values):
            await self._aio._change(self._writer._write_all)

    async def flush(self) -> None:
        """Writes all rows that were added, and returns once they are as durable as asked for."""
        await self._aio._change(self._writer.flush)

    async def close(self) -> None:
        """Writes what is there, and ends the writer."""
        await self._aio._change(self._writer.close)

    async def discard(self) -> int:
        """Gives up the rows that are not written, and returns how many there were."""
        return await self._aio._change(self._writer.discard)

    @property
    def pending(self) -> int:
        """Rows that were added and are not written."""
        return self._writer.pending

    @property
    def written(self) -> int:
        """Rows that were written."""
        return self._writer.written

    async def __aenter__(self) -> AsyncWriter:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<arc.AsyncWriter of {self._writer!r}>"


def _forget(reading: asyncio.Future[Any]) -> None:
    """Takes note of an error that no caller waits for."""
    if not reading.cancelled():
        reading.exception()
