"""The same calls for asyncio: on threads, so that the loop goes on, and ended when the task is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from arc import scopes
from arc.readable import Result

if TYPE_CHECKING:
    from datetime import datetime
    from types import FrameType

    from arc.receipts import Executed, Written
    from arc.relation import Parameters, Relation
    from arc.store import Store
    from arc.tail import Tail

T = TypeVar("T")


class Async:
    """The calls of an engine that wait, to be awaited. Made by ``engine.aio``."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def sql(self, database: str, query: str, params: Parameters = None) -> Coroutine[Any, Any, Result]:
        """Runs a query as :meth:`arc.Engine.sql` does, and returns its rows in memory. Cancelling the task ends the query."""
        # Where it is called, and not where it runs: that is the event loop, in a task of its own.
        return self._sql(database, query, params, scopes.calling_frame())

    async def _sql(self, database: str, query: str, params: Parameters, frame: FrameType | None) -> Result:
        return await self.read(await asyncio.to_thread(self._store._planned, database, query, params, frame))

    async def read(self, relation: Relation) -> Result:
        """Runs a relation and returns its rows in memory. Cancelling the task ends the query."""
        answer = await asyncio.to_thread(relation._open)
        reading = asyncio.ensure_future(asyncio.to_thread(self._store._read, answer, relation.query))
        try:
            return Result(await asyncio.shield(reading))
        except asyncio.CancelledError:
            answer.cancel()
            reading.add_done_callback(_forget)
            raise

    async def tail(self, name: str, *, since: datetime | int | None = None) -> Tail:
        """Begins a tail as :meth:`arc.Engine.tail` does, for ``async for``: a task that waits for rows may be cancelled, and
        none is lost by that."""
        return await self._call(partial(self._store.tail, name, since=since))

    async def write(self, table: str, data: Any, **settings: Any) -> Written:
        """Writes as :meth:`arc.Engine.write` does. A write that has begun is done even if the task is cancelled."""
        return await self._call(partial(self._store.write, table, data, **settings))

    async def write_lp(self, database: str, data: Any, **settings: Any) -> Written:
        """Writes as :meth:`arc.Engine.write_lp` does. A write that has begun is done even if the task is cancelled."""
        return await self._call(partial(self._store.write_lp, database, data, **settings))

    def execute(self, database: str, query: str, params: Parameters = None) -> Coroutine[Any, Any, Executed]:
        """Runs a statement as :meth:`arc.Engine.execute` does. What has begun is done even if the task is cancelled."""
        return self._call(partial(self._store._executed, database, query, params, scopes.calling_frame()))

    async def databases(self) -> list[str]:
        """Returns the names of all databases, sorted."""
        return await self._call(self._store.databases)

    async def tables(self, database: str) -> list[str]:
        """Returns the names of the tables of ``database``, sorted."""
        return await self._call(partial(self._store.tables, database))

    async def close(self) -> None:
        """Ends the use of the engine."""
        await self._call(self._store.close)

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(call)


def _forget(reading: asyncio.Future[Any]) -> None:
    """Takes note of an error that no caller waits for."""
    if not reading.cancelled():
        reading.exception()
