"""The calls for asyncio: parts, writers, and threads that are the engine's own."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import arc
import pytest

MANY = "generate_series(1, 1000000)"
SLOW = f"SELECT count(*) FROM {MANY} a, {MANY} b WHERE a.value > b.value"
LINES = "pump,id=7 rpm=1450i 1\npump,id=8 rpm=1502i 2"


def in_a_task(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 60))


def test_slow_queries_stop_no_write_and_no_call_of_others(engine: arc.Engine) -> None:
    async def work() -> None:
        # More than the loop has threads of its own, on a machine of one core, or two.
        slow = [asyncio.create_task(engine.aio.sql("plant", SLOW)) for _ in range(8)]
        await asyncio.sleep(0.1)
        written = await asyncio.wait_for(engine.aio.write_lp("plant", LINES), 20)
        await asyncio.wait_for(asyncio.to_thread(int), 20)
        assert written.points == 2 and not any(query.done() for query in slow)
        for query in slow:
            query.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    in_a_task(work)


@pytest.mark.parametrize("kind", ["engine", "remote"])
def test_the_calls_are_those_of_the_engine(kind: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue(kind)
    aio: arc.Async = store.aio

    async def work() -> None:
        async with aio.writer("pump", tags=["id"], database="aio", rows=2, seconds=3600) as pump:
            for n in range(5):
                await pump.add({"time": n}, id="7", rpm=n)
            assert (pump.written, pump.pending) == (4, 1)
            await pump.flush()
            assert (pump.written, pump.pending, await pump.discard()) == (5, 0, 0)
            with pytest.raises(arc.InvalidInputError, match="rpm"):
                await pump.add(rpm=object())
        with pytest.raises(arc.InvalidInputError, match="closed"):
            await pump.add(rpm=1)
        parts = [part async for part in aio.batches("aio", "SELECT rpm FROM pump ORDER BY rpm")]
        assert [row for part in parts for row in part.fetchall()] == [(n,) for n in range(5)]
        await aio.delete("aio", "pump", "time < '1970-01-01T00:00:00.000000003Z'")
        assert (await aio.sql("aio", "SELECT count(*) FROM pump")).fetchone() == (2,)
        if kind == "engine":
            assert (await aio.flush()).files
        else:
            with pytest.raises(arc.InvalidInputError, match="a server flushes by itself"):
                await aio.flush()

    in_a_task(work)


def test_parts_come_while_the_rest_is_computed_and_end_with_the_loop(engine: arc.Engine) -> None:
    async def work() -> None:
        local = [{"id": "7"}]
        engine.register("sites", local)
        parts = engine.aio.batches("plant", "SELECT value FROM generate_series(1, 1000000000000)")
        async for part in parts:
            assert part.fetchone() == (1,)
            break
        await parts.aclose()  # type: ignore[attr-defined]
        with pytest.raises(arc.InvalidInputError, match="(?i)divide"):
            failing = "SELECT 1 / value FROM generate_series(0, 0)"
            async for part in engine.aio.batches("plant", failing):
                pass
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(aiter(engine.aio.batches("plant", SLOW))), 0.2)

    in_a_task(work)


def test_a_block_closes_the_engine_and_its_threads_end(folder: Path) -> None:
    async def work() -> None:
        async with arc.open(folder).aio as engine:
            assert (await engine.write_lp("plant", LINES)).points == 2
            assert any(thread.name.startswith("arc-aio") for thread in threading.enumerate())
        with pytest.raises(arc.ClosedError):
            await engine.write_lp("plant", LINES)
        await engine.close()

    in_a_task(work)
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("arc-aio"):
            thread.join(20)
            assert not thread.is_alive()


def test_a_write_whose_task_is_gone_is_stored_before_the_engine_is_closed(folder: Path) -> None:
    begun = threading.Event()

    def rows() -> Any:
        begun.set()
        for n in range(2_000):
            yield {"time": n, "rpm": n}

    async def work(engine: arc.Engine) -> None:
        task = asyncio.create_task(engine.aio.write("pump", rows(), database="plant"))
        await asyncio.to_thread(begun.wait)
        task.cancel()

    with arc.open(folder) as engine:
        asyncio.run(work(engine))
    with arc.open(folder) as engine:
        assert len(engine.plant.pump) == 2_000


@pytest.mark.skipif(sys.platform == "win32", reason="this platform does not fork")
def test_forks_and_the_end_of_the_interpreter_wait_for_no_thread(folder: Path) -> None:
    program = f"""
import arc, asyncio, os, sys
engine = arc.open(sys.argv[1])
async def ask():
    return (await engine.aio.sql("plant", "SELECT 1")).fetchone()
async def leave():
    asyncio.create_task(engine.aio.sql("plant", {SLOW!r}))
    await asyncio.sleep(0.1)
print(asyncio.run(ask()), flush=True)
child = os.fork()
if child == 0:
    try:
        asyncio.run(ask())
    except arc.ClosedError:
        print("closed", flush=True)
    os._exit(0)
os.waitpid(child, 0)
asyncio.run(leave())
print(asyncio.run(ask()))
"""
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(1,)\nclosed\n(1,)\n", "")
