"""The threads of one engine on which the calls of ``engine.aio`` wait.

Not those that the event loop has for everything: on two cores these are six, and as many slow
queries would stop all else.
Made by ``arc.store``, used by ``arc.aio``. Never runs a call on the loop's own thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

T = TypeVar("T")

MOST = 32
"""Threads of one engine. Each is started when there is no idle one."""


class Threads:
    """A pool of threads that belongs to one engine, and whose writes end before the engine does."""

    __slots__ = ("_pool", "_process", "_writes")

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0
        self._writes: set[Future[object]] = set()

    def _own_pool(self) -> ThreadPoolExecutor:
        pool = self._pool
        if pool is None or self._process != os.getpid():
            # A fork brings no threads along, and the pool of its parent would wait for them.
            pool, self._writes = ThreadPoolExecutor(MOST, thread_name_prefix="arc-aio"), set()
            self._pool, self._process = pool, os.getpid()
        return pool

    async def run(self, call: Callable[[], T], *, is_write: bool = False) -> T:
        """Runs a call on a thread. A task that is cancelled does not end it.

        is_write: whether the end of the engine waits for it.
        """
        # As `asyncio.to_thread` does: variables of the context are those of the task.
        future = self._own_pool().submit(partial(contextvars.copy_context().run, call))
        if is_write:
            writes: set[Future[object]] = self._writes
            writes.add(future)  # type: ignore[arg-type]
            future.add_done_callback(writes.discard)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Waits for the writes that have begun. Threads end once they are idle."""
        if self._process == os.getpid():
            wait(list(self._writes))
        # Not `shutdown`, after which a late call would be an error that is none of Arc's.
        self._pool = None
